import Foundation
import Spawning
import Testing

extension ProcessTests {
    /// What a newcomer reads in the first hour: commands with mistakes, and the messages that answer them, in
    /// `FirstHour.txt`. Each message says what happened, why, and what to do.
    ///
    /// Commands are the lines of the file that begin with `$`. If the messages changed on purpose, run the test with
    /// `CONFLUX_REWRITE=1`, and read what it has written aloud.
    @Suite struct FirstHourTests {
        private static let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "FirstHour.txt")

        @Test func `each mistake of the first hour is answered as the transcript says`()
            async throws
        {
            let golden = try String(contentsOf: Self.file, encoding: .utf8)
            let sections = golden.components(separatedBy: "\n\n").map {
                $0.split(separator: "\n").map(String.init)
            }
            var found: [String] = []
            try await withSite { site in
                let sequencer = try await site.sequencer()
                _ = try await site.worker("alpha", of: sequencer)
                for section in sections {
                    let head = section.prefix { $0.hasPrefix("#") || $0.hasPrefix("$ ") }
                    guard let command = head.last, command.hasPrefix("$ ") else {
                        found.append(section.joined(separator: "\n"))
                        continue
                    }
                    let told = try await answer(
                        to: String(command.dropFirst(2)), site, at: sequencer.address)
                    found.append((head + told).joined(separator: "\n"))
                }
            }
            try #require(found.count { $0.contains("$ ") } >= 20)
            if ProcessInfo.processInfo.environment["CONFLUX_REWRITE"] == "1" {
                try (found.joined(separator: "\n\n") + "\n").write(
                    to: Self.file, atomically: true, encoding: .utf8)
            } else {
                for (section, found) in zip(sections, found) {
                    #expect(section.joined(separator: "\n") == found)
                }
            }
        }

        /// Runs a line of a shell.
        ///
        /// - Returns: What it prints, and its exit code, without what differs from run to run.
        private func answer(
            to command: String, _ site: Site, at address: String
        ) async throws -> [String] {
            let folder = (Tool.path as NSString).deletingLastPathComponent
            let child = try Child(
                "/bin/sh", ["-c", "cd '\(site.folder)'\n\(command)"],
                environment: [
                    "PATH": "\(folder):/usr/bin:/bin", "HOME": site.folder, "LC_ALL": "C.UTF-8",
                    "CONFLUX_CONNECT": address,
                ], input: .nothing, output: .lines)
            let outcome = try await Tool.outcome(of: child)
            guard case .exited(let code) = outcome.end else {
                throw Failure("\(command) ended by \(outcome.end)")
            }
            let port = try #require(address.split(separator: ":").last)
            return (outcome.output + outcome.errors + ["[exit \(code)]"]).map {
                $0.replacing(":\(port)", with: ":PORT").replacing(site.folder, with: "FOLDER")
                    .replacing(/\d{4}-\d\d-\d\dT[\d:.]+Z/, with: "TIME")
            }
        }
    }
}
