import Conflux
import Foundation
import Spawning

#if os(Linux)
    /// A sequencer and three workers that perform operations and write their history (Tests/HistoryWorker), while they
    /// suffer faults. The last worker reaches the sequencer through proxies.
    ///
    /// Faults don't follow a clock: the next one happens once some more appends have a receipt.
    actor RecordedCluster {
        private enum Fault: CaseIterable {
            case killSequencer, stopSequencer, stopWorker, cut, hold
        }

        /// Not the host from which connections come: no connection can take a killed sequencer's port.
        private static let host = "127.0.0.3"

        private let site: Site
        private var sequencer: RunningSequencer
        private let proxies: [Proxy]
        private let workers: [Child]
        private var random: SplitMix64

        init(_ site: Site, seed: UInt64) async throws {
            self.site = site
            random = SplitMix64(seed: seed)
            sequencer = try await site.sequencer(data: "log", host: Self.host)
            proxies = [try Proxy(before: sequencer.address), try Proxy(before: sequencer.feed)]
            let addresses = [sequencer.address, sequencer.address, proxies[0].address]
            workers = try addresses.enumerated().map { number, address in
                try site.start(
                    [address, "w\(number + 1)", "\(number + 1)"], program: "HistoryWorker",
                    input: .pipe)
            }
        }

        /// Makes all faults happen, ends the workers, and returns the lines of all histories.
        func run() async throws -> [String] {
            let plan = (Fault.allCases + [.killSequencer, .killSequencer, .cut])
                .shuffled(using: &random)
            for fault in plan {
                try await allProgress()
                try await suffer(fault)
            }
            try await allProgress()
            for worker in workers { worker.endInput() }
            var history: [String] = []
            for worker in workers {
                let outcome = try await Tool.outcome(of: worker)
                guard outcome.end == .exited(0) else { throw Failure("\(plan): \(outcome)") }
                history += outcome.output
            }
            for proxy in proxies { proxy.close() }
            return history
        }

        private func suffer(_ fault: Fault) async throws {
            switch fault {
            case .killSequencer:
                sequencer.child.signal(SIGKILL)
                _ = try await sequencer.child.end()
                sequencer = try await site.sequencer(data: "log", at: sequencer)
            case .stopSequencer:
                sequencer.child.signal(SIGSTOP)
                defer { sequencer.child.signal(SIGCONT) }
                // Confirms that it is stopped, and takes some time.
                let status = try await site.run(
                    "status", "--connect", sequencer.address, "--timeout", "400ms")
                guard status.end == .exited(69) else { throw Failure("\(status)") }
            case .stopWorker:
                let index = Int.random(in: 0..<3, using: &random)
                workers[index].signal(SIGSTOP)
                defer { workers[index].signal(SIGCONT) }
                try await progress(of: (index + 1) % 3, by: Int.random(in: 1...60, using: &random))
            case .cut:
                for proxy in proxies { proxy.cut() }
            case .hold:
                // What the last worker says and hears arrives late.
                for proxy in proxies { proxy.delay(.milliseconds(400)) }
                defer { for proxy in proxies { proxy.delay(.zero) } }
                try await progress(of: 0, by: 60)
            }
        }

        /// Waits until every worker has appended something more.
        private func allProgress() async throws {
            for index in workers.indices {
                try await progress(of: index, by: Int.random(in: 5...20, using: &random))
            }
        }

        /// Waits until a worker has got receipts for some more operations that append.
        private func progress(of index: Int, by count: Int) async throws {
            let lines = workers[index].output
            var place = lines.count
            for _ in 0..<count {
                place =
                    try await lines.first(from: place) {
                        $0.contains(#""outcome":"ok""#) && !$0.contains(#""appends":{}"#)
                    }.index + 1
            }
        }
    }
#endif
