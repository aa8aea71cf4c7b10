#if os(Linux)
    import Conflux
    import Foundation
    import Testing

    /// The sections about setting machines up and watching them.
    extension Scenario {
        func install(_ cluster: Operated) async throws {
            let outcome = try await cluster.run("conflux --version")
            #expect(outcome.output == ["conflux \(try Deployment.version())"])
        }

        /// Runs on three machines with their own networks, if this user may make them.
        func onNetwork() async throws {
            let hosts = [Machine.sequencer, Machine.alpha, Machine.beta]
            guard let network = try await Network.make(of: hosts) else {
                print("first set-up: on one network, since this user may not make others")
                return try await withOperated(rawValue) { try await firstSetUp($0) }
            }
            do {
                try await withOperated(rawValue, prefix: network.prefix) {
                    try await firstSetUp($0)
                }
            } catch {
                try await network.remove()
                throw error
            }
            try await network.remove()
        }

        /// The commands before the variables were already run to set the machines up.
        func firstSetUp(_ cluster: Operated) async throws {
            try await cluster.run("conflux status", until: areLive(["alpha", "beta"]))
            try await cluster.run("conflux dispatch counter increment --wait applied")
            let state = try await cluster.run("conflux observe counter", until: isCount(1))
            #expect(state.contains("alpha at") && state.contains("beta at"))
            if Deployment.has("curl") {
                let ready = try await cluster.run("curl -s http://127.0.0.1:7480/readyz")
                #expect(ready.output == ["ok"])
            }
        }

        func sizing(_ cluster: Operated) async throws {
            try await cluster.run("df -h /var/lib/conflux/")
            guard Deployment.has("curl") else { return }
            let bounds = try await cluster.run(
                "curl -s http://127.0.0.1:7480/metrics | grep conflux_bound_")
            #expect(bounds.output.contains { $0.contains("conflux_bound_limit{bound=") })
        }

        func whatToWatch(_ cluster: Operated) async throws {
            try await cluster.run("conflux status", until: areLive(["alpha", "beta"]))
            guard Deployment.has("curl") else { return }
            let metrics = try await cluster.run("curl -s http://127.0.0.1:7480/metrics")
            #expect(metrics.output.contains("conflux_sequencer_serving 1"))
        }
    }
#endif
