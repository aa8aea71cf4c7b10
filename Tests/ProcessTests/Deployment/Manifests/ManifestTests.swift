import Foundation
import Testing

/// The manifests that start containers.
struct ManifestTests {
    private static let reads =
        "import sys, yaml\nfor path in sys.argv[1:]: list(yaml.safe_load_all(open(path)))"
    private static let hasYAML = [
        "/usr/lib/python3/dist-packages/yaml/__init__.py"
    ].contains(where: Deployment.isFile)

    @Test(.enabled(if: hasYAML, "python3-yaml is not installed"))
    func `every manifest is YAML`() async throws {
        let files = try Deployment.files(in: "deploy").filter { $0.hasSuffix(".yaml") }
        try #require(files.count >= 5)
        for file in files {
            let outcome = try await Deployment.run(
                "/usr/bin/python3", "-c", Self.reads, Deployment.path(file))
            #expect(outcome.end == .exited(0), "\(file): \(outcome.message)")
        }
    }

    @Test(
        .enabled(if: Deployment.has("kubectl"), "kubectl is not installed"),
        arguments: [("deploy/kubernetes", 3, 3), ("deploy/kubernetes-etcd", 4, 2)])
    func `the manifests of Kubernetes can be built, with the image of this version`(
        folder: String, imageCount: Int, ownCount: Int
    ) async throws {
        let outcome = try await Deployment.run("kubectl", "kustomize", Deployment.path(folder))
        #expect(outcome.end == .exited(0), "\(outcome.message)")
        let kinds = outcome.output.filter { $0.hasPrefix("kind: ") }
        #expect(
            Set(kinds) == [
                "kind: CronJob", "kind: Deployment", "kind: NetworkPolicy",
                "kind: PersistentVolumeClaim", "kind: PodDisruptionBudget", "kind: Service",
                "kind: StatefulSet",
            ])
        let images = outcome.output.filter { $0.contains(" image: ") }
        let version = try Deployment.version()
        #expect(images.count == imageCount)
        #expect(images.filter { $0.hasSuffix("image: conflux:\(version)") }.count == ownCount)
    }

    /// Answers 200 to `/readyz` and 503 to anything else. Answers 401 if there is a token and the client lacks it.
    private static let server = """
        import http.server, sys
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                expected = "Bearer " + sys.argv[1] if len(sys.argv) > 1 else None
                isAllowed = self.headers.get("Authorization") == expected
                self.send_response((200 if self.path == "/readyz" else 503) if isAllowed else 401)
                self.end_headers()
        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        print(server.server_port, flush=True)
        server.serve_forever()
        """

    @Test(
        .enabled(if: Deployment.has("python3"), "Python is not installed"),
        arguments: [false, true])
    func `a container's health is the program's answer`(hasToken: Bool) async throws {
        try await withSite { site in
            let token = "0123456789abcdef"
            let server = try Child(
                try #require(Deployment.program("python3")),
                ["-c", Self.server] + (hasToken ? [token] : []), environment: Tool.environment)
            defer { server.signal(SIGKILL) }
            let (_, port) = try await server.output.first { _ in true }
            func health(_ path: String, _ variables: [String: String] = [:]) async throws
                -> Child.End
            {
                let address = ["CONFLUX_HTTP": "0.0.0.0:\(port)"]
                return try await Deployment.run(
                    Deployment.path("deploy/container/conflux-health"), path,
                    variables: address.merging(variables) { $1 }
                ).end
            }
            let file = try site.write(token + "\n", to: "token")
            let variables = hasToken ? ["CONFLUX_HTTP_TOKEN": file] : [:]
            #expect(try await health("/readyz", variables) == .exited(0))
            #expect(try await health("/livez", variables) == .exited(1))
            #expect(try await (health("/readyz") == .exited(0)) == !hasToken)
            #expect(try await health("readyz", variables) == .exited(64))
            try await server.destroy()
            #expect(try await health("/readyz", variables) == .exited(1))
        }
    }
}
