import ConfluxVocabulary
import Foundation

@testable import ConfluxProtocol

/// What a script can do. ``grammar`` lists all commands.
enum ScriptCommand: Equatable {
    case set(String, Int)
    case start, stop, kill, restart
    case disk(Disk)
    case loseTail(Int)
    case newLog
    case floor(UInt64)
    case checkpoint
    case log(SequencerEnd)
    case tune(String, String, Int)
    case join(String, named: String?, Hello.Role)
    case open(String, String)
    case bridge(String, String)
    case follow(String, from: UInt64)
    case close(String, String)
    case dispatch(String, String, [String], delivers: Bool, isAtomic: Bool)
    case grow(String, String, Int)
    case diverge(String, String, String)
    case deliver
    case step(Int)
    case stepTo(String)
    case pass(Duration)
    case dropFeed(String, Int)
    case dropAll
    case dropTo(String)
    case reconnect(String)
    case fallSilent(String)
    case comeBack(String)
    case leave(String)
    case speak(String, epoch: UInt64)
    case staleBeat(epoch: UInt64)
    case submitAgain(String)
    case show(String)

    enum Disk: String, CaseIterable {
        case slow, fast, answers, keeps
    }

    /// Every command and what it does.
    static let grammar: [(form: String, meaning: String)] = [
        ("set NAME NUMBER", "a setting of the sequencer, before it starts"),
        ("start", "the sequencer claims the log and serves"),
        ("stop", "it is asked to end"),
        ("kill", "it dies; what is on its way to it or from it is lost"),
        ("restart", "it dies, if it lives, starts again, and every node connects anew"),
        ("disk slow|fast", "appends wait; they are answered, and everything arrives"),
        ("disk answers|keeps", "they are answered, and no more; the disk has them, unanswered"),
        ("tail lost NUMBER", "the log loses its last commits, while the sequencer is dead"),
        ("log new", "the log is another one, while the sequencer is dead"),
        ("log fails|superseded", "the log answers that the term can't go on"),
        ("floor NUMBER", "below this the log answers no fetch"),
        ("checkpoint", "one of all that is in the log is saved"),
        ("tune NODE NAME NUMBER", "a setting of a node, before it joins"),
        ("join NODE [as NAME] [observing]", "a process connects and says hello"),
        ("open NODE STORE", "it hosts a store; passes one beat"),
        ("bridge NODE STATE", "it bridges a state; passes one beat"),
        ("follow NODE NUMBER", "it follows the log from there; passes one beat"),
        ("close NODE STORE", "it hosts the store no longer"),
        ("dispatch NODE TARGET TEXT…", "one batch; TARGET:TEXT is for another target"),
        ("submit NODE TARGET TEXT…", "the same, and nothing is delivered yet"),
        ("atomic NODE TARGET TEXT…", "the same as dispatch, all or nothing"),
        ("grow NODE TARGET NUMBER", "the same, one text of so many bytes"),
        ("diverge NODE STORE TEXT", "its replica, and no other, has a text that nobody dispatched"),
        ("again NODE", "its last batch arrives once more"),
        ("deliver", "everything on its way arrives"),
        ("step NUMBER", "so many frames arrive"),
        ("step to NODE", "frames arrive up to and with the next one for the node"),
        ("pass DURATION", "time passes: 100ms, 2s"),
        ("drop feed NODE NUMBER", "the feed's next messages to it are lost"),
        ("drop all", "everything on its way is lost"),
        ("drop to NODE", "everything on its way to it but the feed is lost"),
        ("reconnect NODE", "its connection is made anew"),
        ("silent NODE", "the process is stopped"),
        ("back NODE", "the stopped process goes on, with a new connection"),
        ("leave NODE", "it says bye"),
        ("speak NODE epoch NUMBER", "it speaks with this epoch"),
        ("stale beat epoch NUMBER", "a sequencer of an older epoch still beats"),
        ("show NODE", "what its stores have applied"),
        ("given COMMAND", "any of these, as what was before: its effects are not told"),
    ]

    /// The word before a command whose effects are left out.
    static let given = "given"

    init(_ command: Script.Command) throws(Script.Fault) {
        let words =
            command.words.first == Self.given ? command.words.dropFirst() : command.words[...]
        guard let parsed = Self.parse(Array(words)) else {
            let first = command.words.first ?? ""
            let forms = Self.grammar.map(\.form).filter { form in
                form.split(separator: " ").first.map(String.init) == first
            }
            let known = forms.isEmpty ? Self.grammar.map(\.form) : forms
            throw Script.Fault(
                line: command.line,
                message: "'\(command.text)' is no command; there is: "
                    + known.joined(separator: ", "))
        }
        self = parsed
    }

    private static func parse(_ words: [String]) -> ScriptCommand? {
        guard let verb = words.first else { return nil }
        let rest = Array(words.dropFirst())
        switch (verb, rest.count) {
        case ("start", 0): return .start
        case ("stop", 0): return .stop
        case ("kill", 0): return .kill
        case ("restart", 0): return .restart
        case ("deliver", 0): return .deliver
        case ("set", 2): return Int(rest[1]).map { .set(rest[0], $0) }
        case ("disk", 1): return Disk(rawValue: rest[0]).map { .disk($0) }
        case ("tail", 2): return rest[0] == "lost" ? Int(rest[1]).map { .loseTail($0) } : nil
        case ("log", 1):
            switch rest[0] {
            case "new": return .newLog
            case "fails": return .log(.logFailed("the disk is gone"))
            case "superseded": return .log(.superseded)
            default: return nil
            }
        case ("checkpoint", 0): return .checkpoint
        case ("floor", 1): return UInt64(rest[0]).map { .floor($0) }
        case ("tune", 3): return Int(rest[2]).map { .tune(rest[0], rest[1], $0) }
        case ("step", 1): return Int(rest[0]).map { .step($0) }
        case ("step", 2): return rest[0] == "to" ? .stepTo(rest[1]) : nil
        case ("pass", 1): return duration(rest[0]).map { .pass($0) }
        case ("show", 1): return .show(rest[0])
        case ("stale", 3):
            guard rest[..<2] == ["beat", "epoch"] else { return nil }
            return UInt64(rest[2]).map { .staleBeat(epoch: $0) }
        case ("speak", 3):
            return rest[1] == "epoch" ? UInt64(rest[2]).map { .speak(rest[0], epoch: $0) } : nil
        case ("drop", 1): return rest[0] == "all" ? .dropAll : nil
        case ("drop", 2): return rest[0] == "to" ? .dropTo(rest[1]) : nil
        case ("drop", 3):
            return rest[0] == "feed" ? Int(rest[2]).map { .dropFeed(rest[1], $0) } : nil
        default: return parseNode(verb, rest)
        }
    }

    /// The commands of one node.
    private static func parseNode(_ verb: String, _ rest: [String]) -> ScriptCommand? {
        guard let node = rest.first else { return nil }
        let texts = Array(rest.dropFirst(2))
        switch (verb, rest.count) {
        case ("join", _):
            var words = rest.dropFirst()
            let isObserver = words.last == "observing"
            if isObserver { words.removeLast() }
            guard words.isEmpty || (words.count == 2 && words.first == "as") else { return nil }
            return .join(node, named: words.last, isObserver ? .observer : .member)
        case ("open", 2): return .open(node, rest[1])
        case ("bridge", 2): return .bridge(node, rest[1])
        case ("follow", 2): return UInt64(rest[1]).map { .follow(node, from: $0) }
        case ("close", 2): return .close(node, rest[1])
        case ("dispatch", 3...):
            return .dispatch(node, rest[1], texts, delivers: true, isAtomic: false)
        case ("submit", 3...):
            return .dispatch(node, rest[1], texts, delivers: false, isAtomic: false)
        case ("atomic", 3...):
            return .dispatch(node, rest[1], texts, delivers: true, isAtomic: true)
        case ("grow", 3): return Int(rest[2]).map { .grow(node, rest[1], $0) }
        case ("diverge", 3): return .diverge(node, rest[1], rest[2])
        case ("again", 1): return .submitAgain(node)
        case ("reconnect", 1): return .reconnect(node)
        case ("silent", 1): return .fallSilent(node)
        case ("back", 1): return .comeBack(node)
        case ("leave", 1): return .leave(node)
        default: return nil
        }
    }

    private static func duration(_ word: String) -> Duration? {
        if let number = Int(word.dropLast(2)), word.hasSuffix("ms") { return .milliseconds(number) }
        if let number = Int(word.dropLast()), word.hasSuffix("s") { return .seconds(number) }
        return nil
    }
}
