import Testing
import TowpathTLS

@Suite("OpenSSL")
struct OpenSSLTests {
    @Test("an error says what is wrong")
    func description() {
        #expect("\(CertificateError("a.pem: no certificate"))" == "a.pem: no certificate")
    }
}
