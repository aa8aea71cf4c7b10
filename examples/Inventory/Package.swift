// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "Inventory",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "conflux", path: "../..")],
    targets: [
        // The states. It uses no process and no network.
        .target(
            name: "InventoryModel", dependencies: [.product(name: "Conflux", package: "conflux")]),
        .systemLibrary(
            name: "CHTTP", pkgConfig: "libmicrohttpd",
            providers: [.apt(["libmicrohttpd-dev"]), .brew(["libmicrohttpd"])]),
        // Hosts both states, and takes orders that arrive over HTTP.
        .executableTarget(
            name: "inventory-http",
            dependencies: [
                "InventoryModel", "CHTTP", .product(name: "ConfluxWorker", package: "conflux"),
            ]),
        .testTarget(
            name: "InventoryTests",
            dependencies: [
                "InventoryModel", "inventory-http",
                .product(name: "ConfluxNode", package: "conflux"),
                .product(name: "ConfluxSimulation", package: "conflux"),
                .product(name: "ConfluxTesting", package: "conflux"),
                // The programs of the tests with processes.
                .product(name: "conflux", package: "conflux"),
            ]),
    ]
)
