// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "Counter",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "conflux", path: "../..")],
    targets: [
        // The states. They use no process and no network.
        .target(name: "Shop", dependencies: [.product(name: "Conflux", package: "conflux")]),
        // Hosts replicas of the states.
        .executableTarget(
            name: "shop-worker",
            dependencies: ["Shop", .product(name: "ConfluxWorker", package: "conflux")]),
        // A separate program that reads and changes the states.
        .executableTarget(
            name: "shop-clerk",
            dependencies: ["Shop", .product(name: "ConfluxNode", package: "conflux")]),
        // Tests of the states.
        .testTarget(
            name: "ShopTests",
            dependencies: ["Shop", .product(name: "ConfluxTesting", package: "conflux")]),
    ]
)
