import ConfluxArguments
import Testing

/// A contradiction in a description is detected when the program starts, not when somebody uses it.
struct DescriptionTests {
    @Test func `a key that the command doesn't describe traps`() async {
        await #expect(processExitsWith: .failure) {
            _ = try invoke("log")[Sample.bind]
        }
    }

    @Test func `two parameters of one name trap`() async {
        await #expect(processExitsWith: .failure) {
            _ = Command("a", summary: "A.", parameters: [Sample.json, Sample.json])
        }
    }

    @Test func `an operand after a repeated one traps`() async {
        await #expect(processExitsWith: .failure) {
            _ = Command("a", summary: "A.", parameters: [Sample.words, Sample.target])
        }
    }

    @Test func `a group of another command's parameters traps`() async {
        await #expect(processExitsWith: .failure) {
            _ = Command(
                "a", summary: "A.", parameters: [Sample.data],
                groups: [.atMostOne(Sample.data, Sample.memory)])
        }
    }

    @Test func `an option that nobody could type traps`() async {
        await #expect(processExitsWith: .failure) {
            _ = Flag("-Bad name", summary: "B.")
        }
    }
}
