#if os(Linux)
    import Foundation
    import Spawning
    import Testing

    /// Network namespaces, one for each machine, on one switch. So the addresses and ports are those of the
    /// runbook, and no other process has them.
    struct Network {
        private let name = "conflux-\(UUID().uuidString.prefix(8))"
        private let hosts: [String]

        /// Makes the namespaces for some IPv4 addresses of one /24 network.
        ///
        /// - Returns: The network, or nil if this user may not make it, or `ip` is missing.
        static func make(of hosts: [String]) async throws -> Network? {
            let network = Network(hosts: hosts)
            guard Deployment.has("ip"), try await network.ip("netns", "add", network.hub) else {
                return nil
            }
            do {
                guard try await network.connect() else {
                    try await network.remove()
                    return nil
                }
            } catch {
                try await network.remove()
                throw error
            }
            return network
        }

        private init(hosts: [String]) { self.hosts = hosts }

        private var hub: String { "\(name)-hub" }
        private func space(_ host: String) -> String { "\(name)-\(host)" }

        /// The words before a command that run it on a machine.
        func prefix(on host: String) throws -> [String] {
            [try #require(Deployment.program("ip")), "netns", "exec", space(host)]
        }

        private func connect() async throws -> Bool {
            guard try await ip("-n", hub, "link", "add", "switch", "up", "type", "bridge") else {
                return false
            }
            for (number, host) in hosts.enumerated() {
                let (space, port) = (space(host), "port\(number)")
                let commands = [
                    ["netns", "add", space],
                    [
                        "-n", space, "link", "add", "eth0", "type", "veth", "peer", "name", port,
                        "netns", hub,
                    ],
                    ["-n", hub, "link", "set", port, "master", "switch", "up"],
                    ["-n", space, "address", "add", "\(host)/24", "dev", "eth0"],
                    ["-n", space, "link", "set", "eth0", "up"],
                    ["-n", space, "link", "set", "lo", "up"],
                ]
                for command in commands where try await !ip(command) { return false }
            }
            return true
        }

        /// Silently loses all packets between two groups of machines: each machine has wrong hardware addresses for
        /// the others.
        func separate(_ some: [String], from others: [String]) async throws {
            for (here, there) in pairs(some, others) {
                try await require([
                    "-n", space(here), "neighbor", "replace", there, "lladdr",
                    "02:00:00:00:00:fe", "dev", "eth0", "nud", "permanent",
                ])
            }
        }

        /// Reconnects machines that were separated.
        func join(_ some: [String], with others: [String]) async throws {
            for (here, there) in pairs(some, others) {
                try await require(["-n", space(here), "neighbor", "del", there, "dev", "eth0"])
            }
        }

        private func pairs(_ some: [String], _ others: [String]) -> [(String, String)] {
            some.flatMap { one in others.flatMap { [(one, $0), ($0, one)] } }
        }

        private func require(_ arguments: [String]) async throws {
            guard try await ip(arguments) else {
                throw Failure("ip \(arguments.joined(separator: " ")) failed")
            }
        }

        /// Removes the namespaces that exist.
        func remove() async throws {
            for space in hosts.map(space) + [hub] where try await ip("netns", "pids", space) {
                guard try await ip("netns", "delete", space) else {
                    throw Failure("the network namespace \(space) is left behind")
                }
            }
        }

        private func ip(_ arguments: String...) async throws -> Bool { try await ip(arguments) }

        private func ip(_ arguments: [String]) async throws -> Bool {
            let program = try #require(Deployment.program("ip"))
            let outcome = try await Tool.outcome(of: try Tool.start(arguments, program: program))
            return outcome.end == .exited(0)
        }
    }
#endif
