import ConfluxNode
import ConfluxWorker
import Testing

@testable import ConfluxCLI

@Suite(.timeLimit(.minutes(5))) struct `A status that is watched` {
    @Test func `a status is shown again until the command is told to end, and this is a success`()
        async throws
    {
        try await `A tour of the commands`.withNodes("alpha") { connect in
            let interruption = Interruption()
            let file = try TemporaryFile()
            guard
                case .run(let invocation) = try Tool.program.parse(["status", "--watch"] + connect)
            else { return }
            let descriptor = file.descriptor
            async let exitCode = Tool.run(
                invocation, interruption: interruption, output: descriptor)
            while file.lines.count < 2 { await Pause.wait(for: .milliseconds(20)) }
            interruption.fire(.interrupted)
            #expect(try await exitCode == .success)
            for line in file.lines {
                #expect(try JSONValue(json: line)["/sessions/0/name"] == "alpha")
            }
        }
    }
}
