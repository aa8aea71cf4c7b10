import Conflux
import Foundation
import Spawning

#if os(Linux)
    /// A sequencer, three workers and two loads, which suffer faults. The last worker and the last load
    /// reach the sequencer through proxies.
    ///
    /// Faults don't follow a clock: the next one happens once some more outcomes have arrived.
    actor FaultedCluster {
        static let workerNames = ["w1", "w2", "w3"]
        /// Not the host from which connections come: no connection can take a killed sequencer's port
        /// before the sequencer has restarted.
        private static let host = "127.0.0.3"
        private static let delays: [Duration] = [
            .milliseconds(5), .milliseconds(20), .milliseconds(60),
        ]

        private let site: Site
        private(set) var sequencer: RunningSequencer
        private var workers: [RunningWorker] = []
        /// Workers that are being restarted.
        private var returning: [Int: Task<RunningWorker, any Error>] = [:]
        private let proxies: [Proxy]
        private var loads: [Load] = []
        private var briefLoads: [Load] = []
        private var random: SplitMix64
        private(set) var sequencersKilled = 0

        init(_ site: Site, seed: UInt64) async throws {
            self.site = site
            random = SplitMix64(seed: seed)
            sequencer = try await site.sequencer(data: "log", host: Self.host)
            proxies = [
                try Proxy(before: sequencer.address), try Proxy(before: sequencer.feed),
            ]
            for index in Self.workerNames.indices {
                workers.append(try await startWorker(index))
            }
            for (index, name) in ["one", "two"].enumerated() {
                loads.append(
                    try Load(
                        name, on: site, at: index == 0 ? sequencer.address : proxies[0].address,
                        seed: seed &+ UInt64(index) &* 7_919, includesBad: index == 0))
            }
        }

        private func startWorker(_ index: Int) async throws -> RunningWorker {
            let name = Self.workerNames[index]
            let isDirect = index + 1 < Self.workerNames.count
            return try await site.worker(
                name, of: sequencer, stores: ["document"],
                at: isDirect ? sequencer.address : proxies[0].address)
        }

        /// Makes all faults happen under load, ends the load and compares all results.
        func run(_ count: Int) async throws {
            let loads = loads
            let feeding = Task {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for load in loads { group.addTask { try await load.run() } }
                    try await group.waitForAll()
                }
            }
            let plan = Fault.plan(count, workers: workers.count, using: &random)
            do {
                for load in loads { try await load.progress(by: Load.aheadMax) }
                for fault in plan { try await suffer(fault) }
                for index in workers.indices { try await back(index) }
            } catch {
                for load in loads { load.finish() }
                feeding.cancel()
                throw Failure("\(plan): \(error)")
            }
            for load in loads { load.finish() }
            try await feeding.value
            try await compare(plan)
            for proxy in proxies { proxy.close() }
        }

        // MARK: Faults

        private func suffer(_ fault: Fault) async throws {
            switch fault {
            case .kill(.sequencer): try await killSequencer()
            case .kill(.worker(let index)): try await killWorker(index)
            case .kill(.dispatcher): try await killDispatcher()
            case .stop(.sequencer):
                sequencer.child.signal(SIGSTOP)
                defer { sequencer.child.signal(SIGCONT) }
                // Confirms that it is stopped, and takes some time.
                let status = try await site.run(
                    "status", "--connect", sequencer.address, "--timeout", "400ms")
                guard status.end == .exited(69) else { throw Failure("\(status)") }
            case .stop(.worker(let index)):
                try await back(index)
                try await stop(workers[index].child, watching: loads[0])
            case .stop(.dispatcher(let index)):
                try await stop(loads[index].child, watching: loads[1 - index])
            case .cut:
                // Cuts the node's and the feed's connection of a worker, and a dispatcher's, unless they are
                // reconnecting.
                for proxy in proxies { proxy.cut() }
            case .delay:
                for proxy in proxies { proxy.delay(Self.delays.randomElement(using: &random)!) }
                defer { for proxy in proxies { proxy.delay(.zero) } }
                try await loads[1].progress(by: Int.random(in: 1...60, using: &random))
            }
            // Sometimes the next fault follows at once.
            guard Int.random(in: 0..<4, using: &random) > 0 else { return }
            let load = loads.randomElement(using: &random)!
            try await load.progress(by: Int.random(in: 1...60, using: &random))
        }

        private func killSequencer() async throws {
            sequencer.child.signal(SIGKILL)
            _ = try await sequencer.child.end()
            sequencersKilled += 1
            sequencer = try await site.sequencer(data: "log", at: sequencer)
        }

        /// Restarts the worker in the background, while the next faults happen.
        private func killWorker(_ index: Int) async throws {
            try await back(index)
            workers[index].child.signal(SIGKILL)
            _ = try await workers[index].child.end()
            returning[index] = Task { try await startWorker(index) }
        }

        private func back(_ index: Int) async throws {
            if let task = returning.removeValue(forKey: index) {
                workers[index] = try await task.value
            }
        }

        /// Starts a dispatcher and soon kills it.
        private func killDispatcher() async throws {
            let load = try Load(
                "brief-\(briefLoads.count)", on: site, at: proxies[0].address,
                seed: random.next())
            briefLoads.append(load)
            async let feeding: Void = load.run()
            try await load.progress(by: Int.random(in: 1...60, using: &random))
            load.child.signal(SIGKILL)
            _ = try await load.child.end()
            try await feeding
        }

        private func stop(_ child: Child, watching load: Load) async throws {
            child.signal(SIGSTOP)
            defer { child.signal(SIGCONT) }
            try await load.progress(by: Int.random(in: 1...100, using: &random))
        }

        // MARK: Afterwards

        private func compare(_ plan: [Fault]) async throws {
            var audits: [LoadAudit] = []
            for load in loads {
                let end = try await load.child.end(within: .seconds(90))
                let audit = try await LoadAudit(load, isWhole: true)
                // The exit code of the first line that failed.
                guard end == .exited(audit.invalidCount == 0 ? 0 : 65) else {
                    throw Failure(load.child.report)
                }
                audits.append(audit)
            }
            for load in briefLoads {
                audits.append(try await LoadAudit(load, isWhole: false))
            }
            let (actions, terms) = try await site.audit(
                audits, at: sequencer.address, in: Self.workerNames, within: .seconds(120))
            guard terms == 1 + sequencersKilled else {
                throw Failure("\(terms) terms after \(sequencersKilled) kills")
            }
            for worker in workers where !worker.child.isRunning {
                throw Failure("\(worker.name) ended by itself:\n\(worker.child.report)")
            }
            let receipts = audits.map(\.receiptCount).reduce(0, +)
            let invalid = audits.map(\.invalidCount).reduce(0, +)
            print(
                """
                faults: \(plan.count) faults, \(sequencersKilled) of them kills of the sequencer; \
                \(actions) actions in the log, \(receipts) receipts, \(invalid) invalid lines
                """)
        }
    }
#endif
