// swift-tools-version: 6.2
import CompilerPluginSupport
import PackageDescription

/// What every target of ours is built with: the Swift 6 language mode, and no warnings.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
]

let package = Package(
    name: "conflux",
    // Those of Apple's devices are for the product `Conflux`, which needs no C library. No test builds it for these.
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .executable(name: "conflux", targets: ["ConfluxCLI"]),
        .executable(name: "conflux-simulate", targets: ["ConfluxSimulate"]),
        .library(name: "Conflux", targets: ["Conflux"]),
        .library(name: "ConfluxEtcd", targets: ["ConfluxEtcd"]),
        .library(name: "ConfluxGateway", targets: ["ConfluxGateway"]),
        .library(name: "ConfluxNode", targets: ["ConfluxNode"]),
        .library(name: "ConfluxSequencer", targets: ["ConfluxSequencer", "ConfluxLog"]),
        .library(name: "ConfluxSimulation", targets: ["ConfluxSimulation"]),
        .library(name: "ConfluxTesting", targets: ["ConfluxTesting"]),
        .library(name: "ConfluxWorker", targets: ["ConfluxWorker"]),
        .library(name: "ConfluxBuiltins", targets: ["ConfluxBuiltins"]),
    ],
    targets: [
        // Lower layers first: a target may import only what stands above it.
        .target(name: "ConfluxVocabulary", swiftSettings: strict),
        // What the system refuses, and why: its errors in words, and its files.
        .target(
            name: "ConfluxSystem", dependencies: ["ConfluxVocabulary"], swiftSettings: strict),
        // How threads wait for each other, wherever that is.
        .target(name: "ConfluxThreads", swiftSettings: strict),
        // The hash that binds content. It is a function like any other, so the protocol may use it.
        .target(
            name: "ConfluxHashing", dependencies: ["ConfluxVocabulary", "CSodium"],
            swiftSettings: strict),
        .target(
            name: "ConfluxProtocol", dependencies: ["ConfluxVocabulary", "ConfluxHashing"],
            swiftSettings: strict),
        // The compiler runs it where `@CompactAction` is used.
        .target(name: "ConfluxExpansion", swiftSettings: strict),
        .macro(
            name: "ConfluxMacros", dependencies: ["ConfluxExpansion"], swiftSettings: strict),
        // Canonical JSON and the compact coding. `Conflux` exports it.
        .target(
            name: "ConfluxCoding", dependencies: ["ConfluxVocabulary", "ConfluxMacros"],
            swiftSettings: strict),
        .target(
            name: "Conflux",
            dependencies: [
                "ConfluxVocabulary", "ConfluxSystem", "ConfluxThreads", "ConfluxCoding",
            ],
            swiftSettings: strict),
        .target(name: "ConfluxArguments", swiftSettings: strict),

        // What a program does before its `main`.
        .target(name: "CStart"),
        // What Swift can't call of the system itself: headers alone.
        .systemLibrary(name: "CSockets"),
        .systemLibrary(
            name: "CSodium", pkgConfig: "libsodium",
            providers: [.apt(["libsodium-dev"]), .brew(["libsodium"])]),
        .systemLibrary(
            name: "CSQLite", pkgConfig: "sqlite3",
            providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),
        .systemLibrary(
            name: "CMicroHTTPD", pkgConfig: "libmicrohttpd",
            providers: [.apt(["libmicrohttpd-dev"]), .brew(["libmicrohttpd"])]),
        .systemLibrary(
            name: "CCurl", pkgConfig: "libcurl",
            providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]),
        // The page of the console, as bytes.
        .target(name: "CConsolePage", exclude: ["Page"]),
        // For the gateway, which speaks to everybody's sockets, and for tests of ours.
        .systemLibrary(
            name: "CZeroMQ", providers: [.apt(["libzmq3-dev"]), .brew(["zeromq"])]),
        .target(
            name: "ConfluxZeroMQ",
            dependencies: ["ConfluxVocabulary", "ConfluxSystem", "CSockets", "CSodium"],
            swiftSettings: strict),
        .target(
            name: "ConfluxLog",
            dependencies: ["ConfluxVocabulary", "ConfluxSystem", "ConfluxHashing", "CSQLite"],
            swiftSettings: strict),
        // The log on etcd: nothing below it needs libcurl.
        .target(
            name: "ConfluxEtcd",
            dependencies: [
                "ConfluxVocabulary", "ConfluxSystem", "ConfluxThreads", "ConfluxLog", "CCurl",
            ],
            swiftSettings: strict),
        .target(
            name: "ConfluxSequencer",
            dependencies: [
                "ConfluxVocabulary", "ConfluxHashing", "ConfluxThreads", "ConfluxProtocol",
                "ConfluxLog", "ConfluxZeroMQ",
            ],
            swiftSettings: strict),
        .target(
            name: "ConfluxNode",
            dependencies: [
                "ConfluxVocabulary", "ConfluxSystem", "ConfluxHashing", "ConfluxProtocol",
                "ConfluxZeroMQ",
                "Conflux",
            ],
            swiftSettings: strict),
        // For tests of states: to be linked into test targets.
        .target(
            name: "ConfluxTesting",
            dependencies: [
                "ConfluxVocabulary", "ConfluxSystem", "ConfluxThreads", "Conflux", "ConfluxNode",
            ],
            swiftSettings: strict),
        .target(
            name: "ConfluxSimulation",
            dependencies: [
                "ConfluxVocabulary", "ConfluxHashing", "ConfluxProtocol", "Conflux", "ConfluxLog",
                "ConfluxEtcd", "ConfluxSequencer", "ConfluxNode", "ConfluxZeroMQ",
            ], swiftSettings: strict),
        .target(
            name: "ConfluxBuiltins", dependencies: ["Conflux", "ConfluxNode"],
            swiftSettings: strict),
        // Metrics and health over HTTP.
        .target(
            name: "ConfluxMonitoring",
            dependencies: ["ConfluxVocabulary", "ConfluxSystem", "CMicroHTTPD"],
            swiftSettings: strict),
        .target(
            name: "ConfluxWorker",
            dependencies: [
                "ConfluxVocabulary", "ConfluxSystem", "ConfluxThreads", "ConfluxArguments",
                "ConfluxMonitoring",
                "ConfluxNode",
                "ConfluxProtocol", "CStart",
            ],
            swiftSettings: strict),
        // Stores for every ZeroMQ socket.
        .target(
            name: "ConfluxGateway",
            dependencies: [
                "ConfluxVocabulary", "ConfluxSystem", "ConfluxHashing", "ConfluxArguments",
                "ConfluxProtocol", "ConfluxZeroMQ", "ConfluxSequencer", "ConfluxNode",
                "ConfluxMonitoring", "ConfluxWorker", "CConsolePage", "CZeroMQ",
            ],
            swiftSettings: strict),
        .executableTarget(
            name: "ConfluxCLI",
            dependencies: [
                "ConfluxVocabulary", "ConfluxSystem", "ConfluxHashing", "ConfluxArguments",
                "ConfluxBuiltins",
                "ConfluxEtcd", "ConfluxGateway", "ConfluxLog", "ConfluxMonitoring", "ConfluxNode",
                "ConfluxProtocol", "ConfluxSequencer", "ConfluxWorker",
            ],
            swiftSettings: strict),

        .executableTarget(
            name: "ConfluxSimulate",
            dependencies: [
                "ConfluxVocabulary", "ConfluxSystem", "Conflux", "ConfluxArguments",
                "ConfluxSimulation", "CStart",
            ],
            swiftSettings: strict),

        .testTarget(
            name: "ConfluxVocabularyTests", dependencies: ["ConfluxVocabulary"],
            swiftSettings: strict),
        .testTarget(
            name: "ConfluxSystemTests", dependencies: ["ConfluxSystem"], swiftSettings: strict),
        .testTarget(
            name: "ConfluxHashingTests", dependencies: ["ConfluxHashing", "ConfluxVocabulary"],
            swiftSettings: strict),
        .testTarget(
            name: "ConfluxProtocolTests",
            dependencies: ["ConfluxHashing", "ConfluxProtocol", "ConfluxVocabulary"],
            exclude: ["Scripts"], swiftSettings: strict),
        .testTarget(
            name: "ConfluxExpansionTests", dependencies: ["ConfluxExpansion"],
            swiftSettings: strict),
        .testTarget(
            name: "ConfluxCodingTests", dependencies: ["ConfluxCoding", "ConfluxVocabulary"],
            swiftSettings: strict),
        .testTarget(
            name: "ConfluxTests", dependencies: ["Conflux", "ConfluxVocabulary"],
            swiftSettings: strict),
        // The samples of docs/coming-from.md, and of the pages in docs/coming-from.
        .testTarget(
            name: "ComingFromTests",
            dependencies: [
                "Conflux", "ConfluxNode", "ConfluxSequencer", "ConfluxTesting", "LikeSwiftUI",
            ],
            swiftSettings: strict),
        // Has the names of SwiftUI that are also names of Conflux, for the same.
        .target(name: "LikeSwiftUI", path: "Tests/LikeSwiftUI", swiftSettings: strict),
        // Those of README.md, docs/testing.md and the products' articles.
        .testTarget(
            name: "ReadmeTests",
            dependencies: [
                "Conflux", "ConfluxBuiltins", "ConfluxEtcd", "ConfluxGateway", "ConfluxLog",
                "ConfluxNode", "ConfluxSequencer", "ConfluxSimulation", "ConfluxTesting",
                "ConfluxWorker",
            ],
            swiftSettings: strict),
        // The package of docs/tutorial.md, file by file.
        .target(
            name: "PollModel", dependencies: ["Conflux"], path: "Tests/Tutorial/PollModel",
            swiftSettings: strict),
        .executableTarget(
            name: "poll-worker", dependencies: ["ConfluxWorker", "PollModel"],
            path: "Tests/Tutorial/poll-worker", swiftSettings: strict),
        .executableTarget(
            name: "poll-client", dependencies: ["ConfluxNode", "PollModel"],
            path: "Tests/Tutorial/poll-client", swiftSettings: strict),
        .executableTarget(
            name: "poll-booth", dependencies: ["ConfluxNode", "PollModel"],
            path: "Tests/Tutorial/poll-booth", swiftSettings: strict),
        .executableTarget(
            name: "poll-mailer", dependencies: ["ConfluxWorker", "PollModel"],
            path: "Tests/Tutorial/poll-mailer", swiftSettings: strict),
        .testTarget(
            name: "PollModelTests", dependencies: ["Conflux", "ConfluxTesting", "PollModel"],
            path: "Tests/Tutorial/PollModelTests", swiftSettings: strict),
        // The package of docs/service.md, file by file: its first version, and what an upgrade changes.
        .target(
            name: "TicketModel", dependencies: ["Conflux"], path: "Tests/Service/TicketModel",
            swiftSettings: strict),
        .executableTarget(
            name: "ticket-desk", dependencies: ["ConfluxWorker", "TicketModel"],
            path: "Tests/Service/ticket-desk", swiftSettings: strict),
        .executableTarget(
            name: "ticket-gateway", dependencies: ["ConfluxGateway", "TicketModel"],
            path: "Tests/Service/ticket-gateway", swiftSettings: strict),
        .target(
            name: "TicketModelUpgraded", dependencies: ["Conflux"],
            path: "Tests/Service/TicketModelUpgraded", swiftSettings: strict),
        .executableTarget(
            name: "ticket-desk-upgraded",
            dependencies: ["ConfluxWorker", "TicketModel", "TicketModelUpgraded"],
            path: "Tests/Service/ticket-desk-upgraded", swiftSettings: strict),
        .testTarget(
            name: "TicketModelTests",
            dependencies: ["Conflux", "ConfluxTesting", "TicketModel", "TicketModelUpgraded"],
            path: "Tests/Service/TicketModelTests", swiftSettings: strict),
        .testTarget(
            name: "ConfluxTestingTests",
            dependencies: [
                "Conflux", "ConfluxNode", "ConfluxProtocol", "ConfluxTesting", "ConfluxVocabulary",
                "Spawning",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "ConfluxArgumentsTests", dependencies: ["ConfluxArguments"],
            swiftSettings: strict),
        .testTarget(
            name: "ConfluxZeroMQTests",
            dependencies: [
                "ConfluxVocabulary", "ConfluxZeroMQ", "CSockets", "CSodium", "CZeroMQ",
            ],
            swiftSettings: strict),
        // Disks that fail when they are told to, for the tests of several targets.
        .target(
            name: "FaultyDisk", dependencies: ["CSQLite"], path: "Tests/FaultyDisk",
            swiftSettings: strict),
        // Changes the files of a log like a failing disk or an attacker, for the same.
        .target(
            name: "Forging", dependencies: ["ConfluxLog", "ConfluxVocabulary", "CSQLite"],
            path: "Tests/Forging", swiftSettings: strict),
        // An etcd of a test's own, for the same.
        .target(
            name: "EtcdCluster", dependencies: ["Spawning"], path: "Tests/EtcdCluster",
            swiftSettings: strict),
        // Processes that inherit nothing from the one that tests.
        .target(
            name: "Spawning", dependencies: ["CSockets"], path: "Tests/Spawning",
            swiftSettings: strict),
        .testTarget(
            name: "ConfluxLogTests",
            dependencies: [
                "ConfluxEtcd", "ConfluxHashing", "ConfluxLog", "ConfluxVocabulary", "CSQLite",
                "EtcdCluster", "FaultyDisk", "Forging",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "ConfluxEtcdTests",
            dependencies: [
                "ConfluxEtcd", "ConfluxHashing", "ConfluxLog", "ConfluxVocabulary", "EtcdCluster",
                "Spawning",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "ConfluxNodeTests",
            dependencies: [
                "ConfluxHashing", "ConfluxLog", "ConfluxNode", "ConfluxProtocol",
                "ConfluxSequencer", "ConfluxTesting", "ConfluxVocabulary", "FaultyDisk",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "ConfluxSimulationTests",
            dependencies: [
                "Conflux", "ConfluxHashing", "ConfluxLog", "ConfluxNode", "ConfluxProtocol",
                "ConfluxSimulate",
                "ConfluxSimulation", "ConfluxVocabulary",
            ],
            swiftSettings: strict),
        // Mistakes in copies of the sources, which the simulator must find.
        .testTarget(name: "PlantedBugTests", swiftSettings: strict),
        .testTarget(
            name: "ConfluxMonitoringTests",
            dependencies: ["ConfluxMonitoring", "ConfluxVocabulary"], swiftSettings: strict),
        .testTarget(
            name: "ConfluxGatewayTests",
            dependencies: [
                "Conflux", "ConfluxArguments", "ConfluxGateway", "ConfluxMonitoring",
                "ConfluxProtocol", "ConfluxVocabulary", "ConfluxWorker",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "ConfluxCLITests",
            dependencies: [
                "ConfluxArguments", "ConfluxBuiltins", "ConfluxCLI", "ConfluxHashing", "ConfluxLog",
                "ConfluxMonitoring", "ConfluxNode",
                "ConfluxProtocol", "ConfluxSequencer", "ConfluxTesting", "ConfluxVocabulary",
                "ConfluxWorker", "CSQLite", "FaultyDisk", "Forging",
            ], swiftSettings: strict),
        .testTarget(
            name: "ConfluxBuiltinsTests", dependencies: ["ConfluxBuiltins"],
            swiftSettings: strict),
        // A worker that dies of certain actions, for the tests of processes.
        .executableTarget(
            name: "TrappingWorker", dependencies: ["ConfluxNode", "ConfluxWorker"],
            path: "Tests/TrappingWorker", swiftSettings: strict),
        // A worker whose code differs by its name, for the same.
        .executableTarget(
            name: "VaryingWorker", dependencies: ["ConfluxNode", "ConfluxWorker"],
            path: "Tests/VaryingWorker", swiftSettings: strict),
        // A worker that records what its operations on lists saw, for the same.
        .executableTarget(
            name: "HistoryWorker", dependencies: ["ConfluxNode", "ConfluxWorker"],
            path: "Tests/HistoryWorker", swiftSettings: strict),
        // A worker that takes a lease when it is told so, for the same.
        .executableTarget(
            name: "LeaseWorker", dependencies: ["ConfluxNode", "ConfluxWorker"],
            path: "Tests/LeaseWorker", swiftSettings: strict),
        // The programs themselves, on sockets and files.
        .testTarget(
            name: "ProcessTests",
            dependencies: [
                "Conflux", "ConfluxBuiltins", "ConfluxCLI", "ConfluxHashing", "ConfluxLog",
                "ConfluxNode", "ConfluxProtocol", "ConfluxVocabulary", "CZeroMQ", "EtcdCluster",
                "HistoryWorker", "LeaseWorker", "Spawning", "TrappingWorker", "VaryingWorker",
                "poll-worker", "ticket-desk", "ticket-desk-upgraded", "ticket-gateway",
            ],
            exclude: ["Terminal/FirstHour.txt"], swiftSettings: strict),
        // Reads the repository and checks the house rules. The exit statuses are the program's.
        .testTarget(
            name: "RepositoryTests",
            dependencies: ["Conflux", "ConfluxCLI", "ConfluxLog", "ConfluxNode", "ConfluxWorker"],
            swiftSettings: strict),
        // Programs as they were written for VueFlux, with their imports replaced. They are
        // clients, so they alone may warn.
        .testTarget(
            name: "VueFluxClientSwift5Tests", dependencies: ["Conflux"],
            swiftSettings: [.swiftLanguageMode(.v5)]),
        .testTarget(
            name: "VueFluxClientSwift6Tests", dependencies: ["Conflux"],
            swiftSettings: [.swiftLanguageMode(.v6)]),
        // A controller of the main actor, which must not even warn. The four share one file.
        .testTarget(
            name: "VueFluxControllerSwift5Tests", dependencies: ["Conflux"],
            swiftSettings: [.swiftLanguageMode(.v5), .treatAllWarnings(as: .error)]),
        .testTarget(
            name: "VueFluxControllerSwift6Tests", dependencies: ["Conflux"], swiftSettings: strict),
        .testTarget(
            name: "VueFluxControllerMainActor5Tests", dependencies: ["Conflux"],
            swiftSettings: [
                .swiftLanguageMode(.v5), .treatAllWarnings(as: .error),
                .defaultIsolation(MainActor.self),
            ]),
        .testTarget(
            name: "VueFluxControllerMainActor6Tests", dependencies: ["Conflux"],
            swiftSettings: strict + [.defaultIsolation(MainActor.self)]),
    ]
)
