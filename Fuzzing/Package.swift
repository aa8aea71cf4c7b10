// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
]

// The layers that read foreign input are built a second time here, through links, with the instrumentation of
// libFuzzer, and so that the targets can use their internal declarations.
let package = Package(
    name: "conflux-fuzzing",
    platforms: [.macOS(.v15)],
    targets: [
        .target(name: "ConfluxVocabulary", swiftSettings: strict),
        .target(
            name: "ConfluxSystem", dependencies: ["ConfluxVocabulary"], swiftSettings: strict),
        .systemLibrary(name: "CSockets"),
        .systemLibrary(name: "CSodium", pkgConfig: "libsodium"),
        .target(
            name: "ConfluxHashing", dependencies: ["ConfluxVocabulary", "CSodium"],
            swiftSettings: strict),
        .target(
            name: "ConfluxProtocol", dependencies: ["ConfluxVocabulary", "ConfluxHashing"],
            swiftSettings: strict),
        .target(
            name: "ConfluxZeroMQ",
            dependencies: ["ConfluxVocabulary", "ConfluxSystem", "CSockets", "CSodium"],
            swiftSettings: strict),
        // Only the sequencer's code about who may connect.
        .target(
            name: "ConfluxAccess",
            dependencies: ["ConfluxVocabulary", "ConfluxProtocol", "ConfluxZeroMQ"],
            swiftSettings: strict),
        // Without the macro, whose program would be built with the fuzzer, too.
        .target(
            name: "ConfluxCoding", dependencies: ["ConfluxVocabulary"],
            exclude: ["Compact/CompactAction.swift"], swiftSettings: strict),
        // libFuzzer has its `main`.
        .executableTarget(
            name: "ConfluxFuzz",
            dependencies: [
                "ConfluxVocabulary", "ConfluxHashing", "ConfluxProtocol", "ConfluxCoding",
                "ConfluxZeroMQ", "ConfluxAccess", "CSodium",
            ],
            swiftSettings: strict + [.unsafeFlags(["-parse-as-library"])]),
    ]
)
