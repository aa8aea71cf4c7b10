import Foundation
import Testing

/// What a process reports to the service manager that started it.
struct ServiceManagerTests {
    /// The watchdog's interval in these tests. A silence five times as long is not due to a slow machine.
    private static let watchdog = ["WATCHDOG_USEC": "200000"]
    private static let silence = Duration.seconds(1)

    private func sequencer(
        _ site: Site, _ socket: String, _ variables: [String: String] = [:]
    ) throws -> Child {
        try site.start(
            ["sequencer", "--memory", "--json", "--bind", "tcp://127.0.0.1:0"],
            variables: variables.merging(["NOTIFY_SOCKET": socket]) { $1 })
    }

    @Test(arguments: [false, true])
    func `a sequencer says that it is ready, and that it stops`(isAbstract: Bool) async throws {
        #if !os(Linux)
            if isAbstract { return }
        #endif
        try await withSite { site in
            let socket = try ManagerSocket(
                isAbstract ? "@conflux-\(UUID().uuidString)" : site.path("notify"))
            let child = try sequencer(site, socket.name)
            #expect(await socket.next() == "READY=1")
            _ = try await child.output.first { $0.contains("\"ready\"") }
            child.signal(SIGTERM)
            #expect(await socket.next() == "STOPPING=1")
            #expect(try await child.end() == .exited(0))
        }
    }

    @Test func `a worker is ready once its stores are current`() async throws {
        try await withSite { site in
            let socket = try ManagerSocket(site.path("notify"))
            let variables = ["NOTIFY_SOCKET": socket.name]
            let early = try site.start(
                ["worker", "--connect", "ipc://\(site.path("nobody"))", "--timeout", "100ms"],
                variables: variables)
            #expect(try await early.end() == .exited(69))
            // It stopped without ever being ready.
            #expect(await socket.next() == "STOPPING=1")

            let sequencer = try await site.sequencer()
            let worker = try site.start(
                ["worker", "--connect", sequencer.address, "--json"], variables: variables)
            #expect(await socket.next() == "READY=1")
            _ = try await worker.output.first { $0.contains("\"ready\"") }
            worker.signal(SIGINT)
            #expect(await socket.next() == "STOPPING=1")
            #expect(try await worker.end() == .exited(0))
        }
    }

    @Test func `the watchdog of an idle process is fed`() async throws {
        try await withSite { site in
            let socket = try ManagerSocket(site.path("notify"))
            let child = try sequencer(site, socket.name, Self.watchdog)
            #expect(await socket.next() == "READY=1")
            for _ in 0..<5 { #expect(await socket.next() == "WATCHDOG=1") }
            child.signal(SIGTERM)
            while let message = await socket.next(), message != "STOPPING=1" {
                #expect(message == "WATCHDOG=1")
            }
            #expect(try await child.end() == .exited(0))
        }
    }

    @Test func `the watchdog of a worker whose reducer hangs is not fed`() async throws {
        try await withSite { site in
            let socket = try ManagerSocket(site.path("notify"))
            let sequencer = try await site.sequencer()
            let worker = try site.start(
                ["--connect", sequencer.address, "--name", "alpha", "--store", "mine", "--json"],
                program: "TrappingWorker",
                variables: Self.watchdog.merging(["NOTIFY_SOCKET": socket.name]) { $1 })
            #expect(await socket.next() == "READY=1")
            for _ in 0..<5 { #expect(await socket.next() == "WATCHDOG=1") }

            let outcome = try await site.run(
                "dispatch", "--connect", sequencer.address, "mine/*", #"{"hang":{}}"#)
            #expect(outcome.end == .exited(0), "\(outcome.message)")
            // Some messages may still be on their way. After them there is silence.
            var messages: [String] = []
            while messages.count < 20, let message = await socket.next(within: Self.silence) {
                messages.append(message)
            }
            #expect(messages.count < 20)
            // Everything else works: the process runs, and its connection is alive.
            #expect(worker.isRunning)
            let status = try await site.run("status", "--connect", sequencer.address, "--json")
            let sessions = try object(status.output.first ?? "")[key: "sessions"]?.array ?? []
            #expect(sessions.contains { $0[key: "name"] == "alpha" && $0[key: "live"] == true })
        }
    }

    @Test func `a watchdog of another process is not fed`() async throws {
        try await withSite { site in
            let socket = try ManagerSocket(site.path("notify"))
            _ = try sequencer(
                site, socket.name, Self.watchdog.merging(["WATCHDOG_PID": "1"]) { $1 })
            #expect(await socket.next() == "READY=1")
            #expect(await socket.next(within: Self.silence) == nil)
        }
    }

    @Test(arguments: [
        (["NOTIFY_SOCKET": "notify"], "NOTIFY_SOCKET"),
        (["NOTIFY_SOCKET": "/" + String(repeating: "x", count: 200)], "NOTIFY_SOCKET"),
        (["NOTIFY_SOCKET": "/notify", "WATCHDOG_USEC": "soon"], "WATCHDOG_USEC"),
        (["NOTIFY_SOCKET": "/notify", "WATCHDOG_USEC": "0"], "WATCHDOG_USEC"),
    ])
    func `an invalid variable is named`(variables: [String: String], name: String) async throws {
        for command in [["sequencer", "--memory", "--bind", "tcp://127.0.0.1:0"], ["worker"]] {
            let outcome = try await Tool.outcome(of: try Tool.start(command, variables: variables))
            #expect(outcome.end == .exited(64))
            #expect(outcome.message.contains("\(name) is"), "\(outcome.message)")
        }
    }

    @Test func `the loss of the service manager ends nothing`() async throws {
        try await withSite { site in
            let child = try sequencer(site, site.path("nobody"))
            let (_, line) = try await child.errors.first { $0.contains("READY=1") }
            #expect(line.contains("could not be sent to the service manager"))
            child.signal(SIGTERM)
            #expect(try await child.end() == .exited(0))
        }
    }
}
