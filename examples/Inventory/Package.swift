// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "Inventory",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "conflux", path: "../..")],
    targets: [
        // The states, and how orders become reservations. It uses no process and no network.
        .target(
            name: "InventoryModel", dependencies: [.product(name: "Conflux", package: "conflux")]),
        // Hosts both states and fills orders.
        .executableTarget(
            name: "inventory-worker",
            dependencies: ["InventoryModel", .product(name: "ConfluxWorker", package: "conflux")]),
        .systemLibrary(
            name: "CHTTP", pkgConfig: "libmicrohttpd",
            providers: [.apt(["libmicrohttpd-dev"]), .brew(["libmicrohttpd"])]),
        // Dispatches the requests that arrive over HTTP. It has no state.
        .executableTarget(
            name: "inventory-http",
            dependencies: [
                "InventoryModel", "CHTTP", .product(name: "ConfluxNode", package: "conflux"),
            ]),
        .testTarget(
            name: "InventoryTests",
            dependencies: [
                "InventoryModel", .product(name: "ConfluxSimulation", package: "conflux"),
                .product(name: "ConfluxTesting", package: "conflux"),
            ]),
    ]
)
