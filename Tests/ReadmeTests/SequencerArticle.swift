import ConfluxSequencer
import Testing

struct SequencerArticle {
    @Test(.timeLimit(.minutes(5))) func `a program can embed a sequencer`() async throws {
        var configuration = SequencerConfiguration(bind: "tcp://127.0.0.1:0", storage: .memory)
        configuration.payloadBytesMax = 64 << 10
        let sequencer = try Sequencer.start(configuration) { event in
            if case .serving(_, let epoch, _) = event { print("serving in epoch \(epoch)") }
        }
        print("nodes connect to \(sequencer.address)")
        let end = await sequencer.stop()
        print(end)
        guard case .stopped = end else {
            Issue.record("\(end)")
            return
        }
    }
}
