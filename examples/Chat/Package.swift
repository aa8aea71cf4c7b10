// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "Chat",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "conflux", path: "../..")],
    targets: [
        // The model of a room. It uses no terminal and no network.
        .target(
            name: "ChatModel", dependencies: [.product(name: "Conflux", package: "conflux")]),
        // Hosts rooms, so that they exist while nobody is connected.
        .executableTarget(
            name: "chat-worker",
            dependencies: ["ChatModel", .product(name: "ConfluxWorker", package: "conflux")]),
        // The program for people.
        .executableTarget(
            name: "chat",
            dependencies: ["ChatModel", .product(name: "ConfluxNode", package: "conflux")]),
        .testTarget(
            name: "ChatModelTests",
            dependencies: [
                "ChatModel", .product(name: "ConfluxSimulation", package: "conflux"),
                .product(name: "ConfluxTesting", package: "conflux"),
            ]),
    ]
)
