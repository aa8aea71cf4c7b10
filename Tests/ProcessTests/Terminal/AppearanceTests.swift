import Testing

extension ProcessTests {
    @Suite struct AppearanceTests {
        private static let action =
            #"{"set":{"at":"/text","value":"\#(String(repeating: "x", count: 70))"}}"#

        /// The output of a command on a terminal, and in a pipe.
        private func run(
            _ arguments: [String], _ variables: [String: String] = [:]
        ) async throws -> (shown: String, piped: String) {
            let site = try Site()
            let sequencer = try await site.sequencer()
            _ = try await site.worker("alpha", of: sequencer, stores: ["document"])
            let connect = ["--connect", sequencer.address]
            _ = try await site.run(
                "dispatch", "document", Self.action, "--wait", "applied", connect[0], connect[1])
            let terminal = try Terminal(arguments + connect, variables: variables)
            let shown = try terminal.end().shown
            let piped = try await Tool.outcome(
                of: try Tool.start(arguments + connect, variables: variables))
            return (shown, (piped.output + piped.errors).joined(separator: "\n"))
        }

        @Test(arguments: [
            ["observe", "document"], ["observe", "document", "--json"], ["log"], ["log", "--json"],
            ["status"], ["status", "--json"], ["observe", "nowhere"], ["status", "--jsn"],
        ])
        func `a terminal gets colours, and a pipe gets none`(arguments: [String]) async throws {
            let (shown, piped) = try await run(arguments)
            #expect(shown.contains("\u{1B}["), "\(shown)")
            #expect(!piped.contains("\u{1B}"), "\(piped)")
        }

        @Test(arguments: [["NO_COLOR": "1"], ["TERM": "dumb"], ["TERM": ""]])
        func `colours can be turned off`(variables: [String: String]) async throws {
            for arguments in [["log", "--json"], ["observe", "nowhere"], ["status"]] {
                let (shown, _) = try await run(arguments, variables)
                #expect(!shown.isEmpty && !shown.contains("\u{1B}"), "\(arguments): \(shown)")
            }
        }

        @Test func `an empty NO_COLOR turns nothing off`() async throws {
            #expect(try await run(["status"], ["NO_COLOR": ""]).shown.contains("\u{1B}["))
        }

        @Test func `JSON has several lines on a terminal, and one in a pipe`() async throws {
            let (shown, piped) = try await run(
                ["observe", "document", "--json"], ["NO_COLOR": "1"])
            #expect(shown.contains("{\r\n  \"node\": \"alpha\",\r\n"), "\(shown)")
            #expect(!piped.contains("\n") && piped.hasPrefix(#"{"node":"alpha","sequence":"#))
            // Both are the same value.
            #expect(try object(shown.replacing("\r\n", with: "")) == object(piped))
        }
    }
}
