import Testing

struct RepositoryTests {
    @Test(arguments: Rule.all)
    func `a rule holds for the repository`(rule: Rule) throws {
        let tree = try Tree.ofThisRepository()
        for violation in rule.check(tree) {
            Issue.record("\(violation)")
        }
    }

    @Test func `the whole repository is read`() throws {
        let tree = try Tree.ofThisRepository()
        #expect(tree.texts["Package.swift"] != nil)
        #expect(tree.folders(in: "Sources").contains("ConfluxVocabulary"))
        #expect(tree.texts.keys.contains { $0.hasPrefix("Tests/RepositoryTests/") })
        #expect(tree.texts.keys.contains { $0.hasPrefix(".ci/") })
        #expect(!tree.paths.contains { $0.hasPrefix(".build/") || $0.hasPrefix(".git/") })
    }
}
