import Foundation
import Testing

/// The rules of ours for the manifests of Kubernetes.
@Suite(
    .enabled(
        if: Deployment.has("kubectl")
            && Deployment.isFile("/usr/lib/python3/dist-packages/yaml/__init__.py"),
        "kubectl or python3-yaml is not installed"))
struct ManifestRuleTests {
    /// Checks a folder's manifests after an edit of their text, a script for `sed`.
    private func faults(in folder: String, after edit: String = "") async throws -> Tool.Outcome {
        try await Deployment.run(
            "sh", "-c", #"kubectl kustomize "$1" | sed -E "$2" | /usr/bin/python3 "$3""#, "sh",
            Deployment.path(folder), edit, Deployment.path("deploy/check-manifests"))
    }

    @Test(arguments: ["deploy/kubernetes", "deploy/kubernetes-etcd"])
    func `the manifests keep every rule`(folder: String) async throws {
        let outcome = try await faults(in: folder)
        #expect(outcome.end == .exited(0), "\(outcome.output.joined(separator: "\n"))")
        #expect(outcome.errors.isEmpty, "\(outcome.message)")
    }

    @Test(arguments: [
        ("s/maxUnavailable: 1/maxUnavailable: 0/", "can't be drained"),
        ("s/memory: 3Gi/memory: 1Gi/", "docs/bounds.md lets"),
        ("s/kind: CronJob/kind: Job/", "has no such kind"),
        ("s/conflux-client: .*/app: conflux-other/", "there are no pods"),
        ("/^  - Egress/d", "to whom the pods may"),
        ("s/claimName: log-.*/claimName: other/", "there is no claim other"),
        ("s/- ReadWriteOnce$/- ReadWriteOncePod/", "only one pod may have"),
        ("s/port: feed/port: food/", "do not have the port food"),
        ("s/automountServiceAccountToken: false/automountServiceAccountToken: true/", "token"),
        ("s/runAsNonRoot: true/runAsNonRoot: false/", "as root"),
        ("s/namespace: conflux/namespace: default/", "not in the namespace"),
        ("s/  - name: log$/  - name: lag/", "there is no volume log"),
    ])
    func `a broken rule is found`(edit: String, fault: String) async throws {
        let outcome = try await faults(in: "deploy/kubernetes", after: edit)
        #expect(outcome.end == .exited(1), "\(outcome.message)")
        #expect(
            outcome.output.contains { $0.contains(fault) },
            "\(outcome.output.joined(separator: "\n"))")
    }
}
