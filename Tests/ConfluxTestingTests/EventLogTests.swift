import Conflux
import ConfluxTesting
import ConfluxVocabulary
import Foundation
import Testing

/// Events in a log whose actions are checked.
struct EventLogTests {
    private struct Struck: Event {
        var hour: Int
    }

    private struct Clock: Model, EventHandling {
        static let name = "clock"
        static let events = EventHandlers<Action>().on(Struck.self) {
            $0.hour == 0 ? nil : .strike($0.hour)
        }
        var last = 0.0
        enum Action: Codable, Sendable { case strike(Int) }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            last = Date().timeIntervalSince1970
        }
    }

    @Test(arguments: [(0, "clock", false), (3, "other", false), (3, "clock,other", true)])
    func `an event in a log is checked as the action that the state makes of it`(
        hour: Int, states: String, isFound: Bool
    ) async {
        let log = """
            {"action":{"hour":\(hour)},"kind":"action","sequence":3,"target":"event:struck:\(states)"}
            """
        let found = await failures { await DeterminismChecker(Clock.self).check(log: log) }
        #expect(found.contains { $0.message.contains("action 1 of 1") } == isFound)
    }

    @Test(arguments: ["event:struck:clock,other", "clock/*", "clock/shared"])
    func `a target is read as it is described`(text: String) {
        #expect(Target(described: text)?.description == text)
    }
}
