// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
]

// Set by `script/bench --peers`, which installs what this target needs.
let hasPeers = Context.environment["CONFLUX_BENCH_PEERS"] != nil
let peers: [Target] = [
    // The same workload over servers that others wrote, in C, by their own client libraries.
    .target(
        name: "CPeers", dependencies: ["CPartner"],
        linkerSettings: [.linkedLibrary("hiredis"), .linkedLibrary("nats")])
]

// A folder with VueFlux, as a package that builds here: the workload `local` shows its figures, too.
let vueFlux = Context.environment["CONFLUX_BENCH_VUEFLUX"]
let vueFluxProducts: [Target.Dependency] = [
    .product(name: "VueFlux", package: "vueflux"),
    .product(name: "VueFluxReactive", package: "vueflux"),
]

// Set by `script/bench etcd`, for the same reason.
let hasEtcd = Context.environment["CONFLUX_BENCH_ETCD"] != nil
let etcd: [Target] = [
    // The transactions of a log on etcd, by gRPC in C++.
    .target(
        name: "CEtcdPartner",
        linkerSettings: ["grpc++", "grpc", "gpr", "absl_synchronization"].map { .linkedLibrary($0) }
    )
]

let package = Package(
    name: "conflux-benchmarks",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "conflux-bench", targets: ["ConfluxBench"])
    ],
    dependencies: [
        .package(name: "conflux", path: "..")
    ] + (vueFlux.map { [.package(name: "vueflux", path: $0)] } ?? []),
    targets: [
        // The same hops over plain libzmq, in C: what the machine and libzmq allow.
        .target(name: "CPartner", linkerSettings: [.linkedLibrary("zmq")]),
        .executableTarget(
            name: "ConfluxBench",
            dependencies: [
                "CPartner",
                .product(name: "Conflux", package: "conflux"),
                .product(name: "ConfluxBuiltins", package: "conflux"),
                .product(name: "ConfluxEtcd", package: "conflux"),
                .product(name: "ConfluxGateway", package: "conflux"),
                .product(name: "ConfluxNode", package: "conflux"),
                .product(name: "ConfluxSequencer", package: "conflux"),
            ] + (hasPeers ? ["CPeers"] : []) + (hasEtcd ? ["CEtcdPartner"] : [])
                + (vueFlux == nil ? [] : vueFluxProducts),
            swiftSettings: strict + (hasPeers ? [.define("PEERS")] : [])
                + (hasEtcd ? [.define("ETCD")] : [])
                + (vueFlux == nil ? [] : [.define("VUEFLUX")])),
    ] + (hasPeers ? peers : []) + (hasEtcd ? etcd : []),
    cxxLanguageStandard: .cxx17
)
