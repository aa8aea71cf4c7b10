import Foundation

@main
struct Program {
    static func main() async {
        let words = Array(CommandLine.arguments.dropFirst())
        if ProcessInfo.processInfo.environment[GatewayRoles.programVariable] != nil {
            await GatewayRoles.runGateway()
        }
        if words.count == 2, words[0] == Role.option {
            await play(words[1])
            return
        }
        if words.contains("--help") {
            print(Settings.usage, terminator: "")
            return
        }
        let settings: Settings
        do {
            settings = try Settings(words)
        } catch {
            fail("\(error); see --help", code: 64)
        }
        do {
            try measure(settings)
        } catch {
            fail("\(error)", code: 1)
        }
    }

    private static func fail(_ message: String, code: Int32) -> Never {
        FileHandle.standardError.write(Data("conflux-bench: \(message)\n".utf8))
        exit(code)
    }

    private static func measure(_ settings: Settings) throws {
        // A write to a process that has ended must not end this one.
        signal(SIGPIPE, SIG_IGN)
        if !settings.isJSON {
            print(method(settings))
            print(Row.heading)
        }
        try settings.run { rows in
            for row in rows { print(settings.isJSON ? try row.json() : row.line) }
            fflush(nil)
        }
    }

    private static func method(_ settings: Settings) -> String {
        var load = [0.0, 0.0, 0.0]
        getloadavg(&load, 3)
        return """
            \(settings.rounds) alternating rounds; median [min–max]; the ratio is Conflux by \
            partner in the same round.
            The partner of stream and latency is plain libzmq in C over the same hops; of local \
            and read, a lock; of the others, what the row says.
            \(ProcessInfo.processInfo.activeProcessorCount) processors, load \
            \(String(format: "%.1f", load[0])) at the start; logs in \(settings.folder.path).

            """
    }

    /// Plays the role of one process.
    private static func play(_ text: String) async {
        Control.begin()
        do {
            switch try JSONDecoder().decode(Role.self, from: Data(text.utf8)) {
            case .sequencer(let bind, let folder, let keys):
                try await NodeRoles.sequencer(bind: bind, folder: folder, keys: keys)
            case .sharedSequencer(let log): try await SharedRoles.sequencer(log: log)
            case .failover(let place): try await SharedRoles.failover(at: place)
            case .producer(let place, let producer, let count, let form, let payloadBytes):
                try await NodeRoles.producer(
                    at: place, producer: producer, count: count, form: form,
                    payloadBytes: payloadBytes)
            case .audience(let place, let feeds, let subscribers, let count):
                try await RelayRoles.audience(
                    at: place, feeds: feeds, subscribers: subscribers, count: count)
            case .visitors(let place, let count):
                try await NodeRoles.visitors(at: place, count: count)
            case .replica(let place, let count, let form):
                try await NodeRoles.replica(at: place, count: count, form: form)
            case .roundTrips(let place, let count):
                try await NodeRoles.roundTrips(at: place, count: count)
            case .transactions(let place, let count):
                try await NodeRoles.transactions(at: place, count: count)
            case .timers(let place, let count, let isBurst):
                try await TimerRoles.timers(at: place, count: count, isBurst: isBurst)
            case .pendingTimers(let place, let count):
                try await TimerRoles.pendingTimers(at: place, count: count)
            case .receipts(let place, let count, let inFlight):
                try await NodeRoles.receipts(at: place, count: count, inFlight: inFlight)
            case .typedProducer(let place, let count, let coding):
                try await TypedRoles.producer(at: place, count: count, coding: coding)
            case .typedReplica(let place, let count, let coding):
                try await TypedRoles.replica(at: place, count: count, coding: coding)
            case .busy(let threads): NodeRoles.busy(threads: threads)
            case .readers(let address, let count):
                try ReaderRoles.readers(address: address, count: count)
            case .loris(let addresses, let count):
                try HostileRoles.loris(addresses: addresses, count: count)
            case .idle(let places, let feed, let count):
                try HostileRoles.idle(places: places, feed: feed, count: count)
            case .flood(let place, let feed, let count):
                try HostileRoles.flood(place: place, feed: feed, count: count)
            case .keeper(let folder, let settings):
                try await LedgerRoles.keeper(folder: folder, settings)
            case .ledger(let address, let table):
                try await LedgerRoles.node(address: address, table)
            case .listener(let feed): try await LedgerRoles.listener(feed: feed)
            case .decoder: try await LedgerRoles.decoder()
            case .counter(let place, let count, let isByHand):
                try await GatewayRoles.counter(at: place, count: count, isByHand: isByHand)
            case .publisher(let count): try GatewayRoles.publisher(count: count)
            case .follower(let address, let topic, let isGateway, let count):
                try GatewayRoles.follower(
                    address: address, topic: topic, isGateway: isGateway, count: count)
            case .asker(let address, let count, let window):
                try GatewayRoles.asker(address: address, count: count, window: window)
            case .partnerSequencer(let path, let zeroedBytes, let subscribers):
                try PartnerRoles.sequencer(
                    path: path, zeroedBytes: zeroedBytes, subscribers: subscribers)
            case .partnerProducer(let input, let producer, let count, let frameActions):
                try PartnerRoles.producer(
                    input: input, producer: producer, count: count, frameActions: frameActions)
            case .partnerReplica(let output, let count):
                try PartnerRoles.replica(output: output, count: count)
            case .partnerRoundTrips(let input, let output, let count):
                try PartnerRoles.roundTrips(input: input, output: output, count: count)
            case .peerProducer(let place, let producer, let count, let entryActions):
                try PeerRoles.producer(
                    at: place, producer: producer, count: count, entryActions: entryActions)
            case .peerReplica(let place, let count):
                try PeerRoles.replica(at: place, count: count)
            case .peerRoundTrips(let place, let count):
                try PeerRoles.roundTrips(at: place, count: count)
            }
        } catch {
            Control.tell(.failed("\(error)"))
        }
    }
}
