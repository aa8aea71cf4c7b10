// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
]

// The layers that read what comes from outside stand here once more, by links, so that they are
// built with libFuzzer's instrumentation, and so that the targets see what is internal to them.
let package = Package(
    name: "conflux-fuzzing",
    platforms: [.macOS(.v15)],
    targets: [
        .target(name: "ConfluxVocabulary", swiftSettings: strict),
        .target(
            name: "ConfluxProtocol", dependencies: ["ConfluxVocabulary"], swiftSettings: strict),
        .systemLibrary(name: "CSockets"),
        .systemLibrary(name: "CSodium", pkgConfig: "libsodium"),
        .target(
            name: "ConfluxZeroMQ", dependencies: ["ConfluxVocabulary", "CSockets", "CSodium"],
            swiftSettings: strict),
        // Of the sequencer, who may connect.
        .target(
            name: "ConfluxAccess",
            dependencies: ["ConfluxVocabulary", "ConfluxProtocol", "ConfluxZeroMQ"],
            swiftSettings: strict),
        .target(
            name: "ConfluxCoding", dependencies: ["ConfluxVocabulary"], swiftSettings: strict),
        // Its `main` is libFuzzer's.
        .executableTarget(
            name: "ConfluxFuzz",
            dependencies: [
                "ConfluxVocabulary", "ConfluxProtocol", "ConfluxCoding", "ConfluxZeroMQ",
                "ConfluxAccess", "CSodium",
            ],
            swiftSettings: strict + [.unsafeFlags(["-parse-as-library"])]),
    ]
)
