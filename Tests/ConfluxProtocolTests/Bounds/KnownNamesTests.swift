import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// The known names that a rejection lists.
struct KnownNamesTests {
    @Test func `only the first of many known names are listed`() throws {
        var directory = StoreDirectory()
        #expect(directory.knownNames == "none yet")
        var names: Set<String> = []
        var bridged: [Name] = []
        let store = StoreRecord(life: SequenceNumber(1), schemaVersion: 1, initial: .none)
        func expectFirst(_ directory: StoreDirectory) {
            let shown = names.sorted().prefix(20).joined(separator: ", ")
            let rest = names.count > 20 ? " and \(names.count - 20) more" : ""
            #expect(directory.knownNames == shown + rest)
        }
        for index in 0..<60 {
            let number = 100 + index * 37 % 60
            let state = try #require(Name("state\(number)"))
            switch index % 3 {
            case 0: directory.see(.state(state), by: nil)
            case 1:
                directory.bridge(
                    StateBridge(state: state, schemaVersion: 1), by: Incarnation(2),
                    of: .session(Incarnation(2)))
                bridged.append(state)
            default:
                let name = StoreName(state: state, instance: try #require(Name("one")))
                directory.insert(store, named: name)
                names.insert(name.description)
            }
            names.insert(state.text)
            expectFirst(directory)
        }
        for (index, state) in bridged.enumerated() {
            // A state stays known if the log has an entry of it.
            if index.isMultiple(of: 2) {
                directory.see(state, by: nil)
            } else {
                names.remove(state.text)
            }
            directory.endBridge(state, by: Incarnation(2))
            expectFirst(directory)
        }
        // A dropped store is no longer known, but its state is.
        for name in directory.lives.lives.keys.sorted() {
            directory.end(name, life: SequenceNumber(1))
            names.remove(name.description)
            expectFirst(directory)
        }
        #expect(directory.lives.count == 0 && directory.initialBytes.total == 0)
    }
}
