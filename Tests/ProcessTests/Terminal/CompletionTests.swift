import Foundation
import Testing

extension ProcessTests {
    @Suite struct CompletionTests {
        /// The words that bash offers for a line whose last word is incomplete.
        private func offered(
            _ site: Site, _ address: String, _ words: String...
        ) async throws -> Tool.Outcome {
            let script = """
                eval "$(conflux completions bash)"
                COMP_WORDS=("$@")
                COMP_CWORD=$(( $# - 1 ))
                _conflux
                printf '%s\\n' "${COMPREPLY[@]}"
                """
            let folder = (Tool.path as NSString).deletingLastPathComponent
            let child = try Child(
                "/bin/bash", ["-c", script, "bash", "conflux"] + words,
                environment: Tool.environment.merging([
                    "PATH": "\(folder):/usr/bin:/bin", "CONFLUX_CONNECT": address,
                    "XDG_CONFIG_HOME": site.folder,
                ]) { $1 })
            return try await Tool.outcome(of: child)
        }

        @Test func `a shell offers the existing stores, nodes and contexts`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                _ = try await site.worker(
                    "alpha", of: sequencer, stores: ["counter", "document/a"])
                let address = sequencer.address
                let stores = try await offered(site, address, "observe", "cou")
                #expect(stores.output == ["counter/shared"])
                let targets = try await offered(site, address, "dispatch", "d")
                #expect(targets.output == ["document/a"])
                let states = try await offered(site, address, "actions", "d")
                #expect(states.output == ["document"])
                let actions = try await offered(site, address, "dispatch", "counter", "i")
                #expect(actions.output == ["increment"])
                let quoted = try await offered(site, address, "dispatch", "counter/shared", "")
                #expect(quoted.output == [#"'{"add":{"amount":1}}'"#, "decrement", "increment"])
                let nodes = try await offered(site, address, "observe", "counter", "--node", "")
                #expect(nodes.output == ["alpha"])
                let set = try await Tool.outcome(
                    of: try Tool.start(
                        ["context", "set", "staging", "--connect", address],
                        variables: ["XDG_CONFIG_HOME": site.folder]))
                #expect(set.end == .exited(0))
                let contexts = try await offered(site, address, "status", "--context", "")
                #expect(contexts.output == ["staging"])
            }
        }

        @Test func `completion offers and prints nothing if nobody answers`() async throws {
            try await withSite { site in
                let run = try await offered(site, "tcp://127.0.0.1:1", "observe", "cou")
                #expect(run.output == [""] && run.errors.isEmpty, "\(run.output) \(run.errors)")
            }
        }
    }
}
