import CZeroMQ
import ConfluxProtocol
import Foundation
import Testing

#if os(Linux)
    extension ProcessTests {
        /// Several hostile peers at a time, of the worst kinds: they neither end the sequencer nor fill
        /// its memory, and it still answers others.
        @Suite(.serialized) struct FloodTests {
            /// How long each flood takes. `script/soak` makes it longer.
            private static let duration = Duration.seconds(
                2 * (ProcessInfo.processInfo.environment["CONFLUX_BOUNDS"].flatMap { Int($0) } ?? 1)
            )
            /// The most memory that the sequencer may use: what frames in progress may hold, and what it
            /// needs in any case.
            private static let boundBytes = 96 << 20
            /// The longest median time in which another client's hello may be answered: in a debug build, on a
            /// machine that others use too, and in a release build.
            private static let medianMax: Duration =
                ProcessInfo.processInfo.environment["CONFLUX_EXECUTABLE"] == nil
                ? .seconds(3) : .seconds(1)

            @Test(arguments: Flood.allCases)
            func `a flood of hostile peers harms nobody`(_ flood: Flood) async throws {
                try await withWitness(data: "log") { witness in
                    let place = FloodPlace(
                        address: witness.address, feed: witness.sequencer.feed)
                    let end = ContinuousClock.now + Self.duration
                    let before = try Memory.descriptors(of: witness.sequencer.child)
                    async let others = onThread { try Self.hellos(at: place.address, until: end) }
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for _ in 0..<Flood.peers {
                            group.addTask {
                                try await onThread { try flood.run(against: place, until: end) }
                            }
                        }
                        try await group.waitForAll()
                    }
                    let latencies = try await others.sorted()
                    let after = try await onThread { try Self.hello(at: place.address) }
                    let median = latencies[latencies.count / 2]
                    print(
                        """
                        floods: \(flood): hellos of others: \(latencies.count), at the median \
                        \(median), at most \(latencies.last!); behind it \(after)
                        """)
                    #expect(latencies.count > 3, "others are served")
                    #expect(median < Self.medianMax)
                    #expect(after < .seconds(5))
                    #expect(witness.sequencer.child.output.count < 5_000, "lines are bounded")
                    try witness.site.expectMemory(
                        of: witness.sequencer, below: Self.boundBytes, "\(flood)")
                    // TCP takes a while to detect the peers that don't read.
                    let deadline = ContinuousClock.now + .seconds(40)
                    var now = try Memory.descriptors(of: witness.sequencer.child)
                    while now > before + 10, ContinuousClock.now < deadline {
                        _ = try await onThread { try Self.hello(at: place.address) }
                        now = try Memory.descriptors(of: witness.sequencer.child)
                    }
                    #expect(now <= before + 10, "its connections are gone")
                }
            }

            /// Measures how long other clients wait for a welcome during the flood.
            private static func hellos(
                at address: String, until end: ContinuousClock.Instant
            ) throws -> [Duration] {
                var latencies: [Duration] = []
                repeat {
                    latencies.append(try hello(at: address))
                } while ContinuousClock.now < end
                return latencies
            }

            /// Connects, says hello and waits for the welcome. Tries again without an answer, as a node does.
            private static func hello(at address: String) throws -> Duration {
                let start = ContinuousClock.now
                for _ in 0..<3 {
                    do {
                        _ = try RawNode(at: address, role: .observer)
                        break
                    } catch is NoWelcome {
                        // The table of sessions is full, since so many clients connected. That is an answer, too.
                        break
                    } catch is NoAnswer {
                        continue
                    }
                }
                return ContinuousClock.now - start
            }
        }
    }
#endif
