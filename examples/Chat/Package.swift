// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "Chat",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "conflux", path: "../..")],
    targets: [
        // What a room is. It knows of no terminal and no network.
        .target(
            name: "ChatModel", dependencies: [.product(name: "Conflux", package: "conflux")]),
        // Hosts rooms, so that they are there while nobody is.
        .executableTarget(
            name: "chat-worker",
            dependencies: ["ChatModel", .product(name: "ConfluxWorker", package: "conflux")]),
        // What people run.
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
