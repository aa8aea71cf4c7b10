import Foundation
import Spawning
import Synchronization

/// An etcd for tests: members on free ports, with their own files. They end with the process that runs the
/// tests, however it ends.
package final class EtcdCluster: Sendable {
    /// How the members are started.
    package struct Options: Sendable {
        package var memberCount = 3
        /// Further arguments of etcd.
        package var arguments: [String] = []
        /// Machines with their own networks, one for each member: their addresses, and the words before a program that
        /// start it there. Commands to the cluster run on the last one.
        package var machines: [(address: String, prefix: [String])] = []
        /// Whether to wait until a majority answers.
        package var isAwaited = true
        /// Whether clients connect by TLS, and the arguments of etcd and etcdctl for it.
        package var secure: (server: [String], client: [String])?

        package init() {}
    }

    /// Whether etcd is installed on this machine. If not, the tests that need it are skipped.
    package static let isInstalled: Bool = {
        let isThere = program("etcd") != nil && program("etcdctl") != nil
        if !isThere {
            print(
                "etcd is not installed: tests of logs on etcd are left out (script/bootstrap --etcd)"
            )
        }
        return isThere
    }()

    /// A cluster shared by all tests that don't disturb it. Each uses its own prefix.
    package static let shared = Result { try EtcdCluster() }

    /// The addresses for clients, each `127.0.0.1:port`.
    package let endpoints: [String]
    private let peers: [String]
    private let options: Options
    private let folder: String
    private let members: Mutex<[EtcdMember?]>

    /// Starts the members and waits until they answer.
    package init(_ options: Options = Options()) throws {
        self.options = options
        let memory = "/dev/shm"
        let parent =
            FileManager.default.isWritableFile(atPath: memory)
            ? memory : FileManager.default.temporaryDirectory.path
        folder = "\(parent)/conflux-etcd-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        if options.machines.isEmpty {
            let ports = try freePorts(2 * options.memberCount)
            endpoints = ports.prefix(options.memberCount).map { "127.0.0.1:\($0)" }
            peers = ports.suffix(options.memberCount).map { "127.0.0.1:\($0)" }
        } else {
            endpoints = options.machines.map { "\($0.address):2379" }
            peers = options.machines.map { "\($0.address):2380" }
        }
        members = Mutex([EtcdMember?](repeating: nil, count: options.memberCount))
        for index in endpoints.indices { try start(index) }
        if options.isAwaited { try awaitHealth() }
    }

    deinit {
        members.withLock { for member in $0 { member?.end() } }
        do {
            try FileManager.default.removeItem(atPath: folder)
        } catch {
            print("\(folder) is left behind: \(error)")
        }
    }

    /// An address for `conflux sequencer --log`.
    package func address(_ prefix: String) -> String {
        "\(options.secure == nil ? "etcd" : "etcds")://\(endpoints.joined(separator: ","))/\(prefix)"
    }

    private var initialCluster: String {
        peers.enumerated().map { "m\($0.offset)=http://\($0.element)" }.joined(separator: ",")
    }

    /// Replaces a member that was killed and has lost its files, as the runbook says.
    package func replace(_ index: Int) throws {
        try FileManager.default.removeItem(atPath: "\(folder)/m\(index)")
        // etcd 3.4 drops a change of members that is requested while no member leads, and never answers. So wait for
        // a leader first.
        try awaitHealth()
        try control(["member", "remove", id(of: index)])
        // etcd accepts no member before the others have been connected for five seconds.
        let deadline = ContinuousClock.now + .seconds(30)
        while true {
            do {
                try control(["member", "add", "m\(index)", "--peer-urls=http://\(peers[index])"])
                break
            } catch let failure as Failure {
                guard failure.description.contains("unhealthy cluster"),
                    ContinuousClock.now < deadline
                else { throw failure }
            }
        }
        try start(index, state: "existing")
    }

    /// Saves a snapshot of the cluster.
    ///
    /// - Returns: The path of the file.
    package func save() throws -> String {
        let file = "\(folder)/saved"
        try control(["snapshot", "save", file], at: [endpoints[0]])
        return file
    }

    /// Starts all members again from a file, after all of them were killed, as the runbook says.
    package func restore(from file: String) throws {
        for index in peers.indices {
            try FileManager.default.removeItem(atPath: "\(folder)/m\(index)")
            try control([
                "snapshot", "restore", file, "--name", "m\(index)", "--data-dir",
                "\(folder)/m\(index)", "--initial-cluster", initialCluster,
                "--initial-advertise-peer-urls", "http://\(peers[index])",
            ])
        }
        for index in peers.indices { try start(index) }
        try awaitHealth()
    }

    /// Starts a member, or restarts one that was killed. The cluster's state is `new` or `existing`.
    package func start(_ index: Int, state: String = "new") throws {
        let scheme = options.secure == nil ? "http" : "https"
        let client = "\(scheme)://\(endpoints[index])"
        let peer = "http://\(peers[index])"
        let member = try EtcdMember(
            folder: folder,
            behind: options.machines.isEmpty ? [] : options.machines[index].prefix,
            arguments: [
                "--name", "m\(index)", "--data-dir", "\(folder)/m\(index)",
                "--listen-client-urls", client, "--advertise-client-urls", client,
                "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                "--initial-cluster", initialCluster, "--initial-cluster-state", state,
                "--log-level", "error", "--logger", "zap",
            ] + options.arguments + (options.secure?.server ?? []))
        members.withLock { $0[index] = member }
    }

    /// Sends a signal to a member. After SIGKILL, it returns once the member has ended.
    package func signal(_ number: Int32, _ index: Int) {
        members.withLock { members in
            if number == SIGKILL {
                members[index]?.end()
                members[index] = nil
            } else {
                members[index]?.signal(number)
            }
        }
    }

    /// Waits until a majority answers.
    package func awaitHealth() throws {
        _ = try control(["get", "conflux-health"])
    }

    /// Makes a member the leader.
    package func letLead(_ index: Int) throws {
        let leading = try leader()
        guard leading != index else { return }
        try control(["move-leader", id(of: index)], at: [endpoints[leading]])
    }

    /// The id that etcd gave to a member.
    private func id(of index: Int) throws -> String {
        let list = try control(["member", "list"]).split(separator: "\n")
        let id = list.first { $0.contains(" m\(index),") }?.prefix { $0 != "," }
        guard let id else { throw Failure("no member m\(index): \(list)") }
        return String(id)
    }

    /// The index of the leading member.
    package func leader() throws -> Int {
        let text = try control(["endpoint", "status", "--write-out", "json"])
        guard let list = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [[String: Any]]
        else { throw Failure("no status of etcd: \(text)") }
        for item in list {
            let status = item["Status"] as? [String: Any]
            let header = status?["header"] as? [String: Any]
            guard let leader = status?["leader"] as? NSNumber,
                leader == header?["member_id"] as? NSNumber,
                let endpoint = item["Endpoint"] as? String,
                let index = endpoints.firstIndex(where: { endpoint.hasSuffix($0) })
            else { continue }
            return index
        }
        throw Failure("no member leads: \(text)")
    }

    /// Runs `etcdctl` with all members, or with some.
    @discardableResult
    package func control(
        _ arguments: [String], at endpoints: [String]? = nil, input: String = ""
    ) throws -> String {
        let endpoints = endpoints ?? self.endpoints
        guard let program = program("etcdctl") else { throw Failure("no etcdctl") }
        let scheme = options.secure == nil ? "http" : "https"
        let line = (options.machines.last?.prefix ?? []) + [program]
        let ended = try run(
            line[0],
            line.dropFirst() + [
                "--endpoints", endpoints.map { "\(scheme)://\($0)" }.joined(separator: ","),
                "--dial-timeout=20s", "--command-timeout=20s",
            ] + (options.secure?.client ?? []) + arguments,
            ["ETCDCTL_API": "3", "PATH": "/usr/bin:/bin"], input: input)
        guard ended.status == 0 else {
            throw Failure(
                "etcdctl \(arguments.joined(separator: " ")): \(ended.output)\(ended.errors)")
        }
        return ended.output
    }
}

/// A member. A shell runs it, and kills it when the shell's own input ends.
// Everything is set once, and `end` is called under a mutex.
private final class EtcdMember: @unchecked Sendable {
    private static let script = """
        folder=$1
        shift
        "$@" >>"$folder/log" 2>&1 &
        id=$!
        echo $id
        stays=
        while read -r line; do stays=1; done
        kill -9 $id
        [ -n "$stays" ] || rm -rf "$folder"
        """

    private let shell: pid_t
    private let input: Int32
    private let processID: pid_t

    init(folder: String, behind prefix: [String], arguments: [String]) throws {
        guard let program = program("etcd") else { throw Failure("no etcd") }
        let (feed, answer) = (try makePipe(), try makePipe())
        input = feed.writeEnd
        let output = FileHandle(fileDescriptor: answer.readEnd, closeOnDealloc: true)
        defer { for end in [feed.readEnd, answer.writeEnd] { close(end) } }
        shell = try spawn(
            "/bin/sh", ["-c", Self.script, "sh", folder] + prefix + [program] + arguments,
            ["PATH": "/usr/bin:/bin"],
            descriptors: [feed.readEnd, answer.writeEnd, STDERR_FILENO], isGroupLeader: true)
        var line = Data()
        while line.last != UInt8(ascii: "\n") {
            let more = try output.read(upToCount: 1) ?? Data()
            guard !more.isEmpty else { throw Failure("no member of etcd was started") }
            line += more
        }
        guard let id = pid_t(String(decoding: line.dropLast(), as: UTF8.self)) else {
            throw Failure("no member of etcd was started")
        }
        processID = id
    }

    func signal(_ number: Int32) {
        kill(processID, number)
    }

    /// Kills the member, and waits until it has ended.
    func end() {
        // "stay" keeps the files. Without it, as when the tests crash, they are removed.
        _ = write(input, "stay\n", 5)
        close(input)
        awaitEnd(of: shell)
        // The process that adopted the member reaps it soon.
        let deadline = ContinuousClock.now + .seconds(10)
        while kill(processID, 0) == 0, ContinuousClock.now < deadline { sched_yield() }
    }
}

private func program(_ name: String) -> String? {
    ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"].map { "\($0)/\(name)" }
        .first { FileManager.default.isExecutableFile(atPath: $0) }
}

/// Free ports below those that the system assigns on request.
private func freePorts(_ count: Int) throws -> [UInt16] {
    var found: [UInt16] = []
    for _ in 0..<10_000 where found.count < count {
        let port = UInt16.random(in: 20_000..<32_000)
        if !found.contains(port), isFree(port) { found.append(port) }
    }
    guard found.count == count else { throw Failure("no free ports") }
    return found
}

private func isFree(_ port: UInt16) -> Bool {
    #if canImport(Darwin)
        let descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #else
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #endif
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
    }
}
