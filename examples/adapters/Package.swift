// swift-tools-version: 6.2
import PackageDescription

// The packages that these files adapt to are not dependencies of Conflux, and its build uses no network. `Published`
// has the declarations that the files use, in the form in which the packages publish them, so that the files are
// compiled. In your own package, depend on the packages instead, as README.md shows.
let published = ["Logging", "Metrics", "ServiceLifecycle", "Tracing"]

let package = Package(
    name: "adapters",
    platforms: [.macOS(.v15)],
    products: [.library(name: "ConfluxAdapters", targets: ["ConfluxAdapters"])],
    dependencies: [.package(name: "conflux", path: "../..")],
    targets: [
        .target(
            name: "ConfluxAdapters",
            dependencies: published.map { .byName(name: $0) } + [
                .product(name: "ConfluxNode", package: "conflux")
            ])
    ] + published.map { .target(name: $0, path: "Published/\($0)") }
)
