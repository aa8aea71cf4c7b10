// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "Counter",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "conflux", path: "../..")],
    targets: [
        // The states: they know of no process and no network.
        .target(name: "Shop", dependencies: [.product(name: "Conflux", package: "conflux")]),
        // Hosts replicas of them.
        .executableTarget(
            name: "shop-worker",
            dependencies: ["Shop", .product(name: "ConfluxWorker", package: "conflux")]),
        // A program of its own that reads and changes them.
        .executableTarget(
            name: "shop-clerk",
            dependencies: ["Shop", .product(name: "ConfluxNode", package: "conflux")]),
        // The states, tested.
        .testTarget(
            name: "ShopTests",
            dependencies: ["Shop", .product(name: "ConfluxTesting", package: "conflux")]),
    ]
)
