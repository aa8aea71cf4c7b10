import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxSequencer
import ConfluxWorker
import Testing

@testable import ConfluxCLI

/// The commands about leases, against a sequencer and nodes in this process.
@Suite(.timeLimit(.minutes(5))) struct LeaseCommandTests {
    /// A sequencer, and a node that holds the lease `cashier`.
    private func withLease(
        _ body: (_ lease: Lease, _ node: Node, _ connect: [String]) async throws -> Void
    ) async throws {
        let sequencer = try Sequencer.start(
            SequencerConfiguration(bind: "tcp://127.0.0.1:0", storage: .memory))
        let node = try await Node.connect(
            to: sequencer.address, settings: NodeSettings(name: Name("alpha")), scope: Scope())
        let lease = try await node.lease("cashier")
        try await body(lease, node, ["--connect", sequencer.address])
        await node.close()
        await sequencer.stop()
    }

    private func values(_ run: Run) throws -> [JSONValue] {
        try run.lines.map { try JSONValue(json: $0) }
    }

    @Test func `claims are listed with who holds and who waits`() async throws {
        try await withLease { lease, node, connect in
            let other = Task { try await node.lease("cashier") }
            var claims: [JSONValue] = []
            while claims.count < 2 {
                claims = try values(try await Run.tool(["leases", "--json"] + connect))
            }
            #expect(claims[0]["/token"]?.integer == JSONInteger(exactly: lease.token.rawValue))
            #expect(claims.map { $0["/held"] == true } == [true, false])
            #expect(claims.allSatisfy { $0["/lease"]?.string == "cashier/shared" })
            #expect(claims.allSatisfy { $0["/node"]?.string == "alpha" })
            let text = try await Run.tool(["leases"] + connect).lines
            #expect(text.count == 3 && text[0].hasPrefix("LEASE  "), "\(text)")
            #expect(text[1].contains("  held  ") && text[1].hasSuffix("  alpha"), "\(text)")
            #expect(text[2].contains("  waiting  "), "\(text)")
            other.cancel()
            _ = await other.result
        }
    }

    @Test func `all pages of claims are listed`() async throws {
        try await withLease { _, node, connect in
            let count = 1_001
            let leases = try await withThrowingTaskGroup(of: Lease.self) { group in
                for number in 0..<count { group.addTask { try await node.lease("many/\(number)") } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            let run = try await Run.tool(["leases", "--json"] + connect)
            #expect(run.lines.count == count + 1)
            withExtendedLifetime(leases) {}
        }
    }

    @Test func `a released claim is over, and the next one in line holds the lease`() async throws {
        try await withLease { lease, node, connect in
            let next = Task { try await node.lease("cashier") }
            let release = ["leases", "--release", "\(lease.token)"] + connect
            let run = try await Run.tool(release)
            #expect(run.exitCode == .success && run.lines == ["released: the claim \(lease.token)"])
            await lease.waitUntilOver()
            #expect(try await next.value.token > lease.token)
            let failure = try await Run.failure(of: release, LeasesCommand.run)
            #expect(failure?.exitCode == .rejected && failure?.code == "leaseLost")
            #expect(
                failure?.message.hasPrefix("the claim is over") == true, "\(failure?.message ?? "")"
            )
            let log = try await Run.tool(["log"] + connect).lines
            #expect(log.contains { $0.contains("lease claimed: cashier/shared  by ") }, "\(log)")
            #expect(log.contains { $0.contains("lease released: the claim \(lease.token)") })
            let json = try await Run.tool(["log", "--json"] + connect).lines
            #expect(json.contains { $0.hasPrefix(#"{"action":{"claim":"cashier/shared"},"#) })
            #expect(json.contains { $0.hasPrefix(#"{"action":{"release":\#(lease.token)},"#) })
        }
    }

    @Test func `without claims, the list says so`() async throws {
        let sequencer = try Sequencer.start(
            SequencerConfiguration(bind: "tcp://127.0.0.1:0", storage: .memory))
        let connect = ["--connect", sequencer.address]
        #expect(
            try await Run.tool(["leases"] + connect).lines == [
                "nobody has a lease or waits for one"
            ])
        #expect(try await Run.tool(["leases", "--json"] + connect).lines == [])
        await sequencer.stop()
    }

    @Test func `a stream is dispatched under a lease that is free afterwards`() async throws {
        try await `A tour of the commands`.withNodes("alpha") { connect in
            let input = try TemporaryFile("increment\nincrement\n")
            let run = try await Run.tool(
                ["dispatch", "counter", "--file", input.path, "--under", "import"] + connect)
            #expect(run.exitCode == .success && run.lines.count == 2, "\(run.lines)")
            let log = try await Run.tool(["log"] + connect).lines
            let places = [#"{"claim":"import/shared"}"#, #"{"increment":{}}"#].map { text in
                log.firstIndex { $0.contains(text) }
            }
            let (claimed, dispatched) = (try #require(places[0]), try #require(places[1]))
            #expect(claimed < dispatched)
            var claims = [""]
            while !claims.isEmpty { claims = try await Run.tool(["leases"] + connect).lines }
        }
    }

    @Test func `a dispatch whose lease others hold ends after its limit`() async throws {
        try await withLease { _, _, connect in
            let words = ["dispatch", "counter/*", "increment", "--under", "cashier"]
            let run = try await Run.tool(words + ["--within", "50ms"] + connect)
            #expect(run.exitCode == .timedOut)
        }
        for words in [
            ["dispatch", "counter", "increment", "--within", "1s"],
            ["dispatch", "counter", "increment", "--under", "No Lease"],
            ["dispatch", "counter", "-", "--under", "import", "--resume", "key"],
        ] {
            await #expect(throws: UsageError.self) { try await Run.tool(words) }
        }
    }

    @Test func `a command runs under the lease, and its exit code is that of the process`()
        async throws
    {
        try await withLease { lease, _, connect in
            func lock(_ words: String..., command: String...) async throws -> Int32 {
                let line = ["lock"] + words + connect + ["--"] + command
                guard case .run(let invocation) = try Tool.program.parse(line) else { return -1 }
                return await LockCommand.run(invocation, interruption: Interruption())
            }
            #expect(try await lock("free", command: "true") == 0)
            let script = #"test "$CONFLUX_LEASE_TOKEN" -gt 0 && exit 7"#
            #expect(try await lock("free", command: "sh", "-c", script) == 7)
            #expect(try await lock("free", command: "sh", "-c", "kill -9 $$") == 137)
            #expect(try await lock("free", command: "/no/such/program") == 66)
            let late = try await lock("cashier", "--within", "50ms", command: "true")
            #expect(late == ExitCode.timedOut.rawValue)
            withExtendedLifetime(lease) {}
        }
        #expect(throws: UsageError.self) { try Tool.program.parse(["lock", "cashier"]) }
    }
}
