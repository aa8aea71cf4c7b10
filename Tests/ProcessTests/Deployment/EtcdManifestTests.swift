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

        /// The environment variables of a StatefulSet's container, and its arguments of the form `--name=value`.
        private func variables(of name: String) async throws -> [String: String] {
            let script = """
                import json, sys, yaml
                for item in yaml.safe_load_all(sys.stdin):
                    if item["kind"] == "StatefulSet" and item["metadata"]["name"] == sys.argv[1]:
                        container = item["spec"]["template"]["spec"]["containers"][0]
                        pairs = {each["name"]: each.get("value", "") for each in container["env"]}
                        words = [word for word in container.get("args", []) if "=" in word]
                        print(json.dumps(pairs | dict(word.split("=", 1) for word in words)))
                """
            let outcome = try await Deployment.run(
                "sh", "-c", "kubectl kustomize \"$1\" | python3 -c \"$2\" \"$3\"", "sh",
                Deployment.path(Self.folder), script, name)
            let pairs = try object(try #require(outcome.output.first, "\(outcome.message)")).object
            return try #require(pairs).reduce(into: [:]) { $0[$1.key] = $1.value.string }
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
