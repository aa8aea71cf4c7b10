import ConfluxEtcd
import ConfluxLog
import ConfluxVocabulary
import EtcdCluster
import Foundation
import Spawning
import Testing

/// Encrypted connections, and certificates that are invalid.
@Suite(.serialized, .enabled(if: EtcdCluster.isInstalled && Certificates.areAvailable))
struct SecurityTests {
    private func refusal(_ cluster: EtcdCluster, _ security: EtcdSecurity) -> LogError? {
        let (error, time) = failure { _ = try open(cluster) { $0.security = security } }
        #expect(time < .seconds(7), "\(time)")
        return error
    }

    @Test func `a program with a valid certificate is served, and others are denied`() throws {
        let files = try Certificates()
        let server = try files.make("server", by: "authority")
        let own = try files.make("own", by: "authority")
        let foreign = try files.make("foreign", by: "others")
        let old = try files.make("old", by: "authority", days: -1)
        let cluster = try cluster(
            of: 1,
            secure: (
                server: [
                    "--cert-file", server.certificate, "--key-file", server.key,
                    "--trusted-ca-file", files.authority("authority"), "--client-cert-auth",
                ],
                client: [
                    "--cacert", files.authority("authority"), "--cert", own.certificate, "--key",
                    own.key,
                ]
            ))
        let right = EtcdSecurity(
            authorityFile: files.authority("authority"), certificateFile: own.certificate,
            keyFile: own.key)
        let log = try open(cluster) { $0.security = right }
        let epoch = try log.claim().epoch
        let told = DispatchSemaphore(value: 0)
        log.watchClaims { told.signal() }
        #expect(told.wait(timeout: .now() + 10) == .success)
        var commits = try log.fill(5, epoch)
        commits += try log.fill(1, epoch, bytes: 3 << 20)
        #expect(try log.readAll() == commits)
        _ = try open(cluster) { $0.security = right }.claim()
        #expect(told.wait(timeout: .now() + 10) == .success)

        var without = right
        without.certificateFile = nil
        without.keyFile = nil
        #expect(refusal(cluster, without)?.code == .denied)
        var wrong = right
        wrong.certificateFile = foreign.certificate
        wrong.keyFile = foreign.key
        #expect(refusal(cluster, wrong)?.code == .denied)
        var expired = right
        expired.certificateFile = old.certificate
        expired.keyFile = old.key
        let error = refusal(cluster, expired)
        #expect(
            error?.code == .denied && error?.message.contains("valid today") == true,
            "\(String(describing: error))")
        var locked = right
        locked.keyFile = try files.lock(own.key)
        #expect(refusal(cluster, locked)?.code == .denied)
        var unknown = right
        unknown.authorityFile = files.authority("others")
        #expect(refusal(cluster, unknown)?.code == .denied)
        var absent = right
        absent.authorityFile = files.authority("absent")
        #expect(refusal(cluster, absent)?.code == .denied)
        let plain = cluster.address("conflux").replacing("etcds://", with: "etcd://")
        #expect(failure { _ = try open(plain) }.error?.code == .unreachable)
    }

    @Test func `an expired certificate is reported as expired`() throws {
        let files = try Certificates()
        let server = try files.make("server", by: "authority", days: -1)
        var options = EtcdCluster.Options()
        options.memberCount = 1
        // The client that waits for the cluster would not accept this certificate, either.
        options.isAwaited = false
        options.secure = (
            server: ["--cert-file", server.certificate, "--key-file", server.key], client: []
        )
        let cluster = try EtcdCluster(options)
        let error = refusal(
            cluster, EtcdSecurity(authorityFile: files.authority("authority")))
        #expect(error?.code == .denied)
        #expect(error?.message.contains("expired") == true, "\(String(describing: error))")
    }
}

/// Certificates that `openssl` makes for one test.
private final class Certificates {
    static let areAvailable = FileManager.default.isExecutableFile(atPath: "/usr/bin/openssl")

    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent(ownPrefix())
        .path

    init() throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        for name in ["authority", "others"] {
            try run([
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                "-nodes",
                "-keyout", "\(folder)/\(name).key", "-out", authority(name), "-subj", "/CN=\(name)",
                "-days", "2",
            ])
        }
    }

    deinit {
        do {
            try FileManager.default.removeItem(atPath: folder)
        } catch {
            Issue.record("\(folder) is left behind: \(error)")
        }
    }

    func authority(_ name: String) -> String { "\(folder)/\(name).pem" }

    func make(
        _ name: String, by authority: String, days: Int = 2
    ) throws -> (certificate: String, key: String) {
        let path = "\(folder)/\(name)"
        try run([
            "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
            "\(path).key", "-out", "\(path).csr", "-subj", "/CN=\(name)",
        ])
        try Data("subjectAltName=IP:127.0.0.1\n".utf8).write(
            to: URL(fileURLWithPath: "\(path).ext"))
        try run([
            "x509", "-req", "-in", "\(path).csr", "-CA", self.authority(authority), "-CAkey",
            "\(folder)/\(authority).key", "-CAcreateserial", "-days", "\(days)", "-extfile",
            "\(path).ext", "-out", "\(path).crt",
        ])
        return ("\(path).crt", "\(path).key")
    }

    /// Encrypts a key.
    func lock(_ key: String) throws -> String {
        try run(["ec", "-in", key, "-aes256", "-passout", "pass:secret", "-out", "\(key).locked"])
        return "\(key).locked"
    }

    private func run(_ arguments: [String]) throws {
        let ended = try Spawning.run("/usr/bin/openssl", arguments)
        try #require(ended.status == 0, "\(ended.errors)")
    }
}
