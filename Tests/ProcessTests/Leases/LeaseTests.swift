import Foundation
import Spawning
import Testing

extension ProcessTests {
    /// Leases between processes that are killed, stopped and continued: see Tests/LeaseWorker.
    @Suite struct LeaseTests {
        /// A worker that takes a lease, and acts under it, when told so.
        private struct Holder {
            let child: Child

            init(_ name: String, of sequencer: RunningSequencer, _ site: Site) throws {
                child = try site.start(
                    [sequencer.address, name], program: "LeaseWorker", input: .pipe)
            }

            /// Claims the lease. ``held()`` waits for it.
            func take() { child.feed(["take"]) }

            /// Waits until it holds the lease.
            ///
            /// - Returns: The token.
            func held() async throws -> UInt64 {
                let line = try await child.output.first { $0.hasPrefix("held ") }.line
                return try #require(UInt64(line.dropFirst(5)))
            }

            /// What it says to a command.
            func says(to command: String) async throws -> String {
                let mark = child.output.count
                child.feed([command])
                return try await child.output.first(from: mark) { $0 != "over" }.line
            }
        }

        /// Waits until the sequencer lists so many claims.
        ///
        /// - Returns: Their tokens, and whether each holds the lease.
        @discardableResult
        private func claims(
            _ count: Int, at address: String, _ site: Site
        ) async throws -> [UInt64: Bool] {
            let deadline = ContinuousClock.now + .seconds(60)
            var run = try await site.run("leases", "--json", "--connect", address)
            while run.output.count != count {
                guard ContinuousClock.now < deadline else { throw Failure("\(run)") }
                run = try await site.run("leases", "--json", "--connect", address)
            }
            var claims: [UInt64: Bool] = [:]
            for line in run.output {
                let claim = try object(line)
                claims[try #require(claim[key: "token"]?.number)] = claim[key: "held"] == true
            }
            return claims
        }

        @Test func `the next process holds a lease after its holder was killed`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer("--silence", "4s")
                let (one, other) = (
                    try Holder("one", of: sequencer, site), try Holder("other", of: sequencer, site)
                )
                one.take()
                let token = try await one.held()
                #expect(try await one.says(to: "act") == "acted")
                other.take()
                try await claims(2, at: sequencer.address, site)
                #expect(other.child.output.count == 0)
                try await one.child.destroy()
                #expect(try await other.held() > token)
                #expect(try await other.says(to: "act") == "acted")
                #expect(try await other.says(to: "read") == "one other")
            }
        }

        @Test func `a process that was stopped for too long acts in vain`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer("--silence", "4s")
                let (one, other) = (
                    try Holder("one", of: sequencer, site), try Holder("other", of: sequencer, site)
                )
                one.take()
                let token = try await one.held()
                other.take()
                try await claims(2, at: sequencer.address, site)
                one.child.signal(SIGSTOP)
                #expect(try await other.held() > token)
                #expect(try await other.says(to: "act") == "acted")
                // It does not know yet that it has lost the lease.
                let mark = one.child.output.count
                one.child.feed(["act"])
                one.child.signal(SIGCONT)
                _ = try await one.child.output.first(from: mark) { $0 == "leaseLost" }
                _ = try await one.child.output.first { $0 == "over" }
                #expect(try await one.says(to: "read") == "other")
            }
        }

        @Test func `a holder keeps its lease when the sequencer is killed and restarted`()
            async throws
        {
            try await withSite { site in
                // Not the host from which connections come: no connection can take its port.
                let sequencer = try await site.sequencer(
                    data: "log", host: "127.0.0.3", "--silence", "60s")
                let (one, other) = (
                    try Holder("one", of: sequencer, site), try Holder("other", of: sequencer, site)
                )
                one.take()
                let token = try await one.held()
                other.take()
                let before = try await claims(2, at: sequencer.address, site)
                try await sequencer.child.destroy()
                let next = try await site.sequencer(
                    data: "log", at: sequencer, "--silence", "60s")
                #expect(try await one.says(to: "act") == "acted")
                #expect(try await claims(2, at: next.address, site) == before)
                #expect(before[token] == true && before.values.count { $0 } == 1)
                #expect(one.child.output.soFar == ["held \(token)", "acted"])
                one.child.endInput()
                #expect(try await one.child.end() == .exited(0))
                #expect(try await other.held() > token)
            }
        }

        // MARK: conflux lock

        /// Runs a shell's script under the lease `cashier`.
        private func lock(
            _ script: String, of sequencer: RunningSequencer, _ site: Site
        ) throws -> Child {
            try site.start(
                [
                    "lock", "cashier", "--connect", sequencer.address, "--", "/bin/sh", "-c",
                    script,
                ], input: .pipe)
        }

        /// The token, which a script prints first.
        private func token(of child: Child) async throws -> UInt64 {
            try #require(try await child.output.line(0).flatMap { UInt64($0) })
        }

        /// Prints the token, and then its input.
        private static let script = #"echo "$CONFLUX_LEASE_TOKEN"; exec cat"#

        @Test func `a locked command has the input and the output, and one runs at a time`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let one = try lock(Self.script, of: sequencer, site)
                let token = try await self.token(of: one)
                let other = try lock(Self.script + "; exit 3", of: sequencer, site)
                try await claims(2, at: sequencer.address, site)
                one.feed(["a line"])
                #expect(try await one.output.line(1) == "a line")
                #expect(other.output.count == 0)
                one.endInput()
                #expect(try await one.end() == .exited(0))
                #expect(try await self.token(of: other) > token)
                other.signal(SIGTERM)
                #expect(try await other.end() == .exited(143))
                try await claims(0, at: sequencer.address, site)
                let files = try lock("ls /proc/self/fd", of: sequencer, site)
                #expect(try await Tool.outcome(of: files).output == ["0", "1", "2", "3"])
            }
        }

        @Test(arguments: [
            Self.script, #"trap "" TERM; echo "$CONFLUX_LEASE_TOKEN"; while read line; do :; done"#,
        ])
        func `a locked command is ended when the lease is lost`(script: String) async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let child = try lock(script, of: sequencer, site)
                let token = try await self.token(of: child)
                let release = try await site.run(
                    "leases", "--release", "\(token)", "--connect", sequencer.address)
                #expect(release.end == .exited(0), "\(release)")
                let outcome = try await Tool.outcome(of: child)
                #expect(outcome.end == .exited(80), "\(outcome)")
                #expect(outcome.message.contains("The lease cashier/shared was lost"))
            }
        }
    }
}
