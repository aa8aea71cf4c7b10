#if os(Linux)
    import Conflux
    import EtcdCluster
    import Foundation
    import Testing

    /// The etcd members that the manifests start.
    struct EtcdManifestTests {
        private static let folder = "deploy/kubernetes-etcd"
        private static let isAble =
            Deployment.has("kubectl", "openssl", "python3", "ip") && EtcdCluster.isInstalled
            && Deployment.isFile("/usr/lib/python3/dist-packages/yaml/__init__.py")

        /// The container of a StatefulSet or a CronJob.
        private func container(of kind: String, named name: String) async throws -> JSONValue {
            let script = """
                import json, sys, yaml
                for item in yaml.safe_load_all(sys.stdin):
                    if item["kind"] == sys.argv[1] and item["metadata"]["name"] == sys.argv[2]:
                        spec = item["spec"].get("jobTemplate", item)["spec"]
                        print(json.dumps(spec["template"]["spec"]["containers"][0]))
                """
            let outcome = try await Deployment.run(
                "sh", "-c", "kubectl kustomize \"$1\" | python3 -c \"$2\" \"$3\" \"$4\"", "sh",
                Deployment.path(Self.folder), script, kind, name)
            return try object(try #require(outcome.output.first, "\(outcome.message)"))
        }

        /// The environment variables of a StatefulSet's container, and its arguments of the form `--name=value`.
        private func variables(of name: String) async throws -> [String: String] {
            let container = try await container(of: "StatefulSet", named: name)
            var values = try #require(container[key: "env"]?.array).reduce(into: [:]) {
                $0[$1[key: "name"]?.string ?? ""] = $1[key: "value"]?.string ?? ""
            }
            for word in container[key: "args"]?.array ?? [] {
                let parts = (word.string ?? "").split(separator: "=", maxSplits: 1)
                if parts.count == 2 { values[String(parts[0])] = String(parts[1]) }
            }
            return values
        }

        /// Runs the commands in the kustomization's first comment, up to the first of kubectl.
        private func makeCertificates(in folder: String) async throws {
            let head = try Deployment.text("\(Self.folder)/kustomization.yaml")
                .split(separator: "\n", omittingEmptySubsequences: false)
                .prefix { $0.hasPrefix("#") }.filter { $0.hasPrefix("#     ") }
                .map { String($0.dropFirst(6)) }
            let commands = head.prefix { !$0.hasPrefix("kubectl") }
            let outcome = try await Deployment.run(
                "sh", "-ec", "cd \"$0\"\n" + commands.joined(separator: "\n"), folder)
            try #require(outcome.end == .exited(0), "\(outcome.message)")
        }

        @Test(.enabled(if: isAble, "a program that it needs is not installed"))
        func `three members start with the manifest's certificates, and serve a sequencer`()
            async throws
        {
            let hosts = ["10.0.0.41", "10.0.0.42", "10.0.0.43"]
            guard let network = try await Network.make(of: hosts) else {
                print("no members are started, since this user may not make networks")
                return
            }
            do {
                try await withSite { try await serve(on: network, hosts, $0) }
            } catch {
                try await network.remove()
                throw error
            }
            try await network.remove()
        }

        /// Runs the commands of the job that makes backups, beside older backups.
        private func backUp(_ pod: [String], _ site: Site) async throws {
            let older = (1...14).map { "202501\($0 + 10)T030000Z.db" }
            try FileManager.default.createDirectory(
                atPath: site.path("backup/etcd"), withIntermediateDirectories: true)
            for name in older { _ = try site.write("", to: "backup/etcd/\(name)") }
            let job = try await container(of: "CronJob", named: "conflux-backup")
            let script = try #require(job[key: "command"]?.array?.last?.string)
                .replacing("/backup/", with: site.path("backup/"))
            var variables: [String: String] = [:]
            for pair in try #require(job[key: "env"]?.array) {
                variables[try #require(pair[key: "name"]?.string)] =
                    pair[key: "value"]?.string?
                    .replacing("/etc/conflux/etcd/", with: "\(site.folder)/")
            }
            let child = try site.start(
                [], behind: pod.dropLast() + [pod[pod.count - 1] + " '\(script)'"],
                variables: variables)
            let outcome = try await Tool.outcome(of: child)
            #expect(outcome.end == .exited(0), "\(outcome.message)")
            let names = try FileManager.default
                .contentsOfDirectory(atPath: site.path("backup/etcd")).sorted()
            #expect(names.count == 14 && Array(names.prefix(13)) == Array(older.dropFirst()))
            let newest = try #require(names.last)
            let size =
                try FileManager.default.attributesOfItem(
                    atPath: site.path("backup/etcd/\(newest)"))[.size] as? Int
            #expect(newest > "2026" && (size ?? 0) > 4_096)
        }

        private func serve(on network: Network, _ hosts: [String], _ site: Site) async throws {
            try await makeCertificates(in: site.folder)
            let names = hosts.indices.map { "conflux-etcd-\($0)" }
            let lines = zip(hosts, names).map { "\($0) \($1).conflux-etcd" }
            let table = try site.write(
                "127.0.0.1 localhost\n" + lines.joined(separator: "\n") + "\n", to: "hosts")
            /// The words before a `command` that run it in a mount namespace with the pod's hosts file.
            func pod(_ host: String, _ command: String) throws -> [String] {
                try network.prefix(on: host) + [
                    "/bin/sh", "-c", "mount --bind \(table) /etc/hosts && exec \(command)",
                ]
            }
            let member = try await variables(of: "conflux-etcd")
            #expect(member["ETCD_QUOTA_BACKEND_BYTES"] == "\(2 << 30)")
            #expect(member["ETCD_SNAPSHOT_COUNT"] == "10000")
            for (host, name) in zip(hosts, names) {
                var own = member.mapValues {
                    $0.replacing("$(ETCD_NAME)", with: name)
                        .replacing("/etc/etcd/", with: "\(site.folder)/")
                }
                own["ETCD_NAME"] = name
                own["ETCD_DATA_DIR"] = site.path(name)
                _ = try site.start([], behind: try pod(host, "etcd"), variables: own)
            }

            let sequencer = try await variables(of: "conflux-sequencer")
            let log = try #require(sequencer["--log"])
            #expect(names.allSatisfy { log.contains("\($0).conflux-etcd:2379") }, "\(log)")
            #expect(sequencer["--log-limit"] == "2GiB")
            let own = sequencer.filter { $0.key.hasPrefix("--log") }.map {
                "\($0)=\($1.replacing("/etc/conflux/etcd/", with: "\(site.folder)/"))"
            }
            let words = ["sequencer", "--json", "--bind", "tcp://127.0.0.1:0"]
            let serving = try site.start(
                words + own, behind: try pod(hosts[0], "\"$0\" \"$@\""))
            _ = try await serving.output.first { try object($0)[key: "event"] == "ready" }

            try await backUp(pod(hosts[0], "sh -euc"), site)

            // A client without a certificate is refused.
            let anonymous = own.filter {
                !$0.hasPrefix("--log-cert=") && !$0.hasPrefix("--log-key=")
            }
            let denied = try site.start(
                words + anonymous, behind: try pod(hosts[1], "\"$0\" \"$@\""))
            let outcome = try await Tool.outcome(of: denied)
            #expect(outcome.message.contains("Check that the certificates"), "\(outcome)")
        }
    }
#endif
