import ConfluxEtcd
import ConfluxLog
import ConfluxVocabulary
import EtcdCluster
import Foundation
import Testing

/// Places without a log, or with a log that this program can't use: each is reported clearly and in time.
@Suite(.serialized, .enabled(if: EtcdCluster.isInstalled)) struct RefusalTests {
    /// Opens a log that can't be opened.
    private func refusal(
        _ address: String, _ adjust: (inout EtcdLogSettings) -> Void = { _ in }
    ) -> LogError? {
        let limit = Duration.seconds(2)
        let (error, time) = failure {
            _ = try open(address) { settings in
                settings.answerMax = .seconds(1)
                settings.callMax = limit
                adjust(&settings)
            }
        }
        #expect(time < limit + .seconds(1), "\(time)")
        return error
    }

    @Test func `an address where nobody, or no etcd, answers is reported`() throws {
        let silent = try Listener { _ in }
        let chatty = try Listener { connection in
            let words = Array("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n".utf8)
            send(connection, words, words.count, 0)
            close(connection)
        }
        let closing = try Listener { close($0) }
        for place in [silent, chatty, closing].map(\.address) + ["nowhere.invalid:2379"] {
            let error = refusal("etcd://\(place)/conflux")
            #expect(error?.code == .unreachable, "\(place): \(String(describing: error))")
            #expect(error?.message.contains(place) == true)
        }
    }

    @Test func `keys that are no log of this version are left alone`() throws {
        let cluster = try EtcdCluster.shared.get()
        let prefix = ownPrefix()
        try cluster.control(["put", "/\(prefix)/a/other", "1"])
        let foreign = refusal(cluster.address("\(prefix)/a"))
        #expect(foreign?.code == .notALog)
        #expect(foreign?.message.contains("/\(prefix)/a/other") == true)
        // A log is not created above another one, either.
        _ = try open(cluster, "\(prefix)/b/log")
        #expect(refusal(cluster.address("\(prefix)/b"))?.code == .notALog)

        _ = try open(cluster, "\(prefix)/c")
        let key = "/\(prefix)/c/meta"
        for (version, code) in [(3, LogError.Code.newerFormat), (1, .olderFormat)] {
            let words = "conflux-log \(version) \(Identifier.random()) more"
            let checksum = Checksum.text(Checksum.hash("\(key) \(words)"))
            try cluster.control(["put", key, "\(words) \(checksum)"])
            let refused = refusal(cluster.address("\(prefix)/c"))
            #expect(refused?.code == code)
            #expect(refused?.message.contains("format \(version)") == true)
        }
        try cluster.control(["put", key, "conflux-log 2 \(Identifier.random())"])
        #expect(refusal(cluster.address("\(prefix)/c"))?.code == .notALog)
        _ = try open(cluster, "\(prefix)/d")
        try cluster.control(["del", "/\(prefix)/d/end"])
        #expect(refusal(cluster.address("\(prefix)/d"))?.code == .damaged)
    }

    @Test func `programs that create a log at the same time create the same one`() throws {
        let cluster = try EtcdCluster.shared.get()
        let prefix = ownPrefix()
        let ids = Ids()
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            do {
                ids.add(try open(cluster, prefix).id)
            } catch {
                Issue.record(error)
            }
        }
        #expect(ids.all.count == 1)
    }

    @Test func `a user without a name, the right password or rights is denied, and others are not`()
        throws
    {
        let cluster = try cluster(of: 1)
        for line in [
            "user add root:root", "user grant-role root root", "user add good:secret",
            "user add poor:secret", "role add log", "user grant-role good log",
            "role grant-permission log --prefix=true readwrite /conflux/", "auth enable",
        ] {
            try cluster.control(line.split(separator: " ").map(String.init))
        }
        func opened(_ user: String, _ password: String) -> LogError? {
            refusal(cluster.address("conflux")) {
                $0.credentials = EtcdCredentials(user: user, password: password)
            }
        }
        let nobody = refusal(cluster.address("conflux"))
        #expect(nobody?.code == .denied, "\(String(describing: nobody))")
        #expect(opened("good", "wrong")?.code == .denied)
        #expect(opened("unknown", "secret")?.code == .denied)
        #expect(opened("poor", "secret")?.code == .denied)
        let log = try open(cluster) {
            $0.credentials = EtcdCredentials(user: "good", password: "secret")
        }
        let epoch = try log.claim().epoch
        var commits = try log.fill(3, epoch)
        // A restarted member does not know former tokens.
        cluster.signal(SIGKILL, 0)
        try cluster.start(0)
        let commit = LoggedCommit.sample(7, epoch)
        try log.insist(commit)
        commits.append(commit)
        #expect(try log.readAll() == commits)
        try log.save(checkpointAt: 4)
        try log.save(checkpointAt: 6)
        try log.truncateAll(below: 5)
        #expect(log.floor == SequenceNumber(5))
    }

    @Test func `a log continues when authentication is enabled later`() throws {
        let cluster = try cluster(of: 1)
        let log = try open(cluster) {
            $0.credentials = EtcdCredentials(user: "root", password: "root")
        }
        let epoch = try log.claim().epoch
        var commits = try log.fill(3, epoch)
        for line in ["user add root:root", "user grant-role root root", "auth enable"] {
            try cluster.control(line.split(separator: " ").map(String.init))
        }
        commits += try log.fill(3, epoch)
        #expect(try log.readAll() == commits)
    }

    @Test func `a password is sent to other machines only over encrypted connections`() throws {
        let credentials = EtcdCredentials(user: "a", password: "b")
        let error = refusal("etcd://192.0.2.1/conflux") { $0.credentials = credentials }
        #expect(error?.code == .invalidSetting)
        #expect(error?.message.contains("etcds://") == true)
    }

    @Test func `credentials are one line of a file`() throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent(ownPrefix()).path
        defer { unlink(path) }
        func read(_ text: String) throws -> EtcdCredentials {
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
            return try EtcdCredentials(file: path)
        }
        #expect(try read("a:b:c\n") == EtcdCredentials(user: "a", password: "b:c"))
        for text in [
            "", "a", "a:", ":b", "a:b\nc:d\n", "a:" + String(repeating: "b", count: 5_000),
        ] {
            #expect(throws: EtcdFileError.self) { try read(text) }
        }
        #expect(throws: EtcdFileError.self) {
            try EtcdCredentials(file: path + ".absent")
        }
        try Data("a:b\n".utf8).write(to: URL(fileURLWithPath: path))
        let error = #expect(throws: EtcdFileError.self) { try EtcdCredentials(file: path + "/") }
        #expect(error?.description.contains("Not a directory") == true)
    }
}

/// Log ids that several threads collect.
private final class Ids: @unchecked Sendable {  // A lock guards it.
    private let lock = NSLock()
    private var ids: Set<LogID> = []

    var all: Set<LogID> { lock.withLock { ids } }

    func add(_ id: LogID) { lock.withLock { _ = ids.insert(id) } }
}
