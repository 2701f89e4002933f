import Testing
import TowpathWire

@Suite("RFC 9110 §5.6: lists, tokens and parameters")
struct HTTPParameterizedTests {
    /// Members as text: `a;b=c`, with a parameter that has no value as `;b`.
    private func list(_ values: String...) -> [String]? {
        HTTPParameterized.list(values)?.map { member in
            member.list.reduce(into: member.name) { text, parameter in
                text += ";\(parameter.name)" + (parameter.value.map { "=\($0)" } ?? "")
            }
        }
    }

    @Test("members have a name, and parameters with a value or without")
    func members() {
        #expect(list("a") == ["a"])
        #expect(list("a, b") == ["a", "b"])
        #expect(list("a;b") == ["a;b"])
        #expect(list("a; b=c; d , e;f=1") == ["a;b=c;d", "e;f=1"])
        #expect(list(" \ta ;\tb = c\t, d ") == ["a;b=c", "d"])
        #expect(list("a;b=c;b=d") == ["a;b=c;b=d"])
    }

    @Test("several fields are one list")
    func fields() {
        #expect(list("a, b", "c;d", "e") == ["a", "b", "c;d", "e"])
        #expect(list() == [])
    }

    @Test("empty members are passed over (RFC 9110 §5.6.1.2)")
    func empty() {
        #expect(list("") == [])
        #expect(list(" ") == [])
        #expect(list(",") == [])
        #expect(list(", ,a,, b,", "", ",c") == ["a", "b", "c"])
    }

    @Test("a value in quotes is what is in them, a backslash left out")
    func quoted() {
        #expect(list("a;b=\"c\"") == ["a;b=c"])
        #expect(list("a;b=\"\\1\\0\"") == ["a;b=10"])
        #expect(list("a;b=\"c\" , d") == ["a;b=c", "d"])
    }

    @Test(
        "what is no list is none",
        arguments: [
            "a b", "a;", "a; ;b", "a;b=", "a;b= ;c", "=a", ";a", "a=b", "a;b=c d", "a;b=\"c",
            "a;b=\"c\\",
            "a;b=\"c\"d", "\"a\"", "a;\"b\"", "é", "a;é", "a;b=é", "a/b", "a;b==c", "a@b",
            "a;b=\"c\"=",
            "a, b c", "a\u{0}",
        ])
    func malformed(value: String) {
        #expect(list(value) == nil)
        #expect(list("x", value) == nil)
        #expect(list(value, "x") == nil)
    }

    @Test("tokens have no parameters")
    func tokens() {
        #expect(HTTPParameterized.tokens(["a, b", "c"]) == ["a", "b", "c"])
        #expect(HTTPParameterized.tokens([]) == [])
        #expect(HTTPParameterized.tokens(["a;b"]) == nil)
        #expect(HTTPParameterized.tokens(["a b"]) == nil)
    }
}
