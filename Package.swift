// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .treatAllWarnings(as: .error),
]

let package = Package(
    name: "towpath",
    products: [
        .library(name: "Towpath", targets: ["Towpath"]),
        .executable(name: "echo-listener", targets: ["echo-listener"]),
        .executable(name: "pathwatch", targets: ["pathwatch"]),
    ],
    targets: [
        .systemLibrary(name: "CTowpathLinux"),
        .systemLibrary(name: "CTowpathZlib"),
        .target(name: "TowpathWire", dependencies: ["CTowpathZlib"], swiftSettings: strict),
        .target(name: "TowpathReactor", dependencies: ["CTowpathLinux"], swiftSettings: strict),
        .systemLibrary(name: "CTowpathOpenSSL"),
        .target(name: "TowpathTLS", dependencies: ["CTowpathOpenSSL"], swiftSettings: strict),
        .target(
            name: "Towpath", dependencies: ["TowpathWire", "TowpathReactor", "TowpathTLS"],
            swiftSettings: strict),
        .executableTarget(name: "echo-listener", dependencies: ["Towpath"], swiftSettings: strict),
        .executableTarget(name: "pathwatch", dependencies: ["Towpath"], swiftSettings: strict),
        .executableTarget(
            name: "Benchmarks", dependencies: ["Towpath", "TowpathWire"], path: "Benchmarks",
            exclude: ["Limits", "README.md"], swiftSettings: strict),
        .executableTarget(
            name: "AutobahnClient", dependencies: ["Towpath"], path: "Tests/Autobahn/Client",
            swiftSettings: strict),
        .target(
            name: "TestSupport",
            dependencies: ["TowpathReactor", "TowpathTLS", "CTowpathLinux", "CTowpathOpenSSL"],
            path: "Tests/Support",
            swiftSettings: strict),
        .testTarget(
            name: "TowpathWireTests", dependencies: ["TowpathWire", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "TowpathReactorTests",
            dependencies: ["TowpathReactor", "CTowpathLinux", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "TowpathTLSTests",
            dependencies: ["TowpathTLS", "CTowpathOpenSSL", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "TowpathTests",
            dependencies: ["Towpath", "TowpathTLS", "TowpathWire", "TestSupport"],
            swiftSettings: strict),
        .target(
            name: "FuzzInvariants", dependencies: ["TowpathWire", "TowpathTLS", "TestSupport"],
            path: "Tests/Fuzz/Invariants", swiftSettings: strict),
        .testTarget(
            name: "FuzzCorpusTests", dependencies: ["FuzzInvariants"],
            path: "Tests/Fuzz/CorpusTests", swiftSettings: strict),
    ]
)

// Only `Tests/check fuzz` can link these: libFuzzer brings their main function.
if Context.environment["FUZZ"] != nil {
    package.targets += [
        "FuzzCertificate", "FuzzEndpoint", "FuzzInflate", "FuzzNetlink", "FuzzTLS", "FuzzWebSocket",
        "FuzzWebSocketHandshake",
    ].map { name in
        .executableTarget(
            name: name, dependencies: ["FuzzInvariants"], path: "Tests/Fuzz/\(name)",
            swiftSettings: strict)
    }
}
