#if os(Linux)
    import Conflux
    import Foundation
    import Spawning
    import Testing

    /// The sections about stores and nodes with problems, and about keys.
    extension Scenario {
        func divergence(_ cluster: Operated) async throws {
            let names = ["cart": "wordlist"]
            try await cluster.addWords(from: 0)
            let sequencer = try #require(cluster.sequencer).child
            let told = try await cluster.site.event("diverged", of: sequencer)
            #expect(told[key: "majority"] == false)
            try await cluster.run(
                "conflux status", until: { $0.contains("diverged between entries") })
            let states = try await cluster.run("conflux observe cart", with: names)
            #expect(states.output.count == 2)
            try await cluster.run("conflux log --from 4 --to 90 --target cart", with: names)
            try await cluster.run("conflux freeze cart", with: names)
            try await cluster.run(
                "sudo systemctl stop conflux-worker@unordered", on: Machine.beta)
            try await cluster.run("conflux thaw cart", with: names)
            try await cluster.addWords(from: 1_000)
            _ = try await cluster.site.event("converged", of: sequencer)
            try await cluster.run("conflux status", until: { !$0.contains("diverged") })
        }

        func poisonedEntry(_ cluster: Operated) async throws {
            let sequence = try await cluster.dispatch("mine", "explode")
            let number = ["1042": "\(sequence)"]
            for isFirst in [true, false] {
                let worker =
                    isFirst
                    ? try #require(cluster.workers["alpha"])
                    : try cluster.startWorker("alpha", on: Machine.alpha)
                guard case .killed = try await worker.end() else {
                    throw Failure("it did not die: \(worker.report)")
                }
            }
            let stopped = try cluster.startWorker("alpha", on: Machine.alpha)
            let stop = try await cluster.site.event("storeStopped", of: stopped)
            #expect(stop[key: "sequence"]?.number == sequence)
            _ = try await cluster.site.event("ready", of: stopped)
            try await cluster.run(
                "conflux status",
                until: { $0.contains("mine/shared stopped before entry \(sequence) in alpha") })
            let entry = try await cluster.run("conflux log --from 1042 --to 1042", with: number)
            #expect(entry.output.contains { $0.contains("explode") })
            try await cluster.run("conflux log skip 1042", with: number)
            try await cluster.run(
                "sudo systemctl restart conflux-worker@alpha", on: Machine.alpha)
            let ready = try await cluster.site.event(
                "ready", of: try #require(cluster.workers["alpha"]))
            #expect(ready[key: "stores"]?.array == ["mine/shared", "tally/shared"])
            try await cluster.run("conflux status", until: { !$0.contains("stopped") })
        }

        func slowNodes(_ cluster: Operated) async throws {
            try await cluster.findMetrics(of: "alpha")
            let alpha = try #require(cluster.workers["alpha"])
            // On a busy machine, its session may end before the lag is read.
            var isSeen = false
            for _ in 0..<10 where !isSeen {
                isSeen = try await isSlow(alpha, in: cluster)
                guard !isSeen else { break }
                alpha.signal(SIGCONT)
                try await cluster.run("conflux status", until: areLive(["alpha", "beta"]))
            }
            #expect(isSeen)
            alpha.signal(SIGCONT)
            if Deployment.has("curl") {
                try await cluster.run(
                    "curl -s http://127.0.0.1:7481/metrics | grep conflux_node_lag_entries",
                    on: Machine.alpha)
            }
            try await cluster.run(
                "sudo systemctl restart conflux-worker@alpha", on: Machine.alpha)
            try await cluster.run("conflux status", until: areLive(["alpha", "beta"]))
        }

        /// Stops alpha, and reads how far it lags.
        ///
        /// - Returns: Whether the lag was seen; false if the session ended before.
        private func isSlow(_ alpha: Child, in cluster: Operated) async throws -> Bool {
            alpha.signal(SIGSTOP)
            try await cluster.dispatch("counter", "increment")
            let status = try await cluster.run(
                "conflux status", until: { $0.contains(/alpha +[0-9]+ +(left|live +[1-9])/) })
            guard status.contains(/alpha +[0-9]+ +live/) else { return false }
            guard Deployment.has("curl") else { return true }
            let lag = /node_lag_entries\{node="alpha"\} [1-9]/
            let metrics = try await cluster.run(
                "curl -s http://127.0.0.1:7480/metrics | grep conflux_sequencer_node_lag_",
                until: { $0.contains(lag) || !$0.contains("alpha") })
            return metrics.contains(lag)
        }

        func keyRotation(_ cluster: Operated) async throws {
            let alpha = try #require(cluster.workers["alpha"])
            try await cluster.run(
                "sudo conflux keygen /etc/conflux/alpha-new "
                    + "| sed 's/^/alpha /; s/$/ host dispatch/' > alpha.line", on: Machine.alpha)
            try await cluster.run("scp alpha.line 10.0.0.5:", on: Machine.alpha)
            try await cluster.run("sudo sed -i '/^alpha /d' /etc/conflux/authorized")
            try await cluster.run("sudo tee -a /etc/conflux/authorized < alpha.line")
            try await cluster.run("sudo systemctl reload conflux-sequencer")
            _ = try await cluster.site.event("connectionRefused", of: alpha)
            for kind in ["secret", "public"] {
                try await cluster.run(
                    "sudo mv /etc/conflux/alpha-new.\(kind) /etc/conflux/alpha.\(kind)",
                    on: Machine.alpha)
            }
            try await cluster.run(
                "sudo systemctl restart conflux-worker@alpha", on: Machine.alpha)
            try await cluster.run("conflux status", until: areLive(["alpha", "beta"]))
            let beta = try #require(cluster.workers["beta"])
            #expect(!beta.output.soFar.contains { $0.contains("connectionRefused") })

            try await cluster.run("sudo conflux keygen /etc/conflux/sequencer-new")
            for kind in ["secret", "public"] {
                try await cluster.run(
                    "sudo mv /etc/conflux/sequencer-new.\(kind) /etc/conflux/sequencer.\(kind)")
            }
            try await cluster.run("sudo systemctl restart conflux-sequencer")
            _ = try await cluster.site.event("connectionRefused", of: beta)
            // This machine already has the new key. The workers have the old one.
            try await cluster.run("conflux status")
        }

        func noSequencer(_ cluster: Operated) async throws {
            cluster.sequencer?.child.signal(SIGKILL)
            _ = try await cluster.sequencer?.child.end()
            try await cluster.run("conflux status", code: 69)
            if Deployment.has("curl") {
                // `curl` can't connect, since no process listens.
                try await cluster.run("curl -s http://127.0.0.1:7480/readyz", code: 7)
            }
            try await cluster.run("sudo systemctl start conflux-sequencer")
            try await cluster.run("conflux dispatch counter increment")
            for worker in cluster.workers.values {
                _ = try await cluster.site.event("reconnected", of: worker)
            }
        }
    }
#endif
