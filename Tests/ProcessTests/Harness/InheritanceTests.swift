import Foundation
import Spawning
import Testing

struct InheritanceTests {
    /// If it did, a test that waits for the end of its pipe would wait for the processes of other tests.
    @Test func `a process that a test starts inherits no pipe`() throws {
        let pipe = try makePipe()
        defer { for end in [pipe.readEnd, pipe.writeEnd] { close(end) } }
        func has(_ descriptor: Int32) throws -> Bool {
            try run("/bin/sh", ["-c", "[ -e /dev/fd/\(descriptor) ]"]).status == 0
        }
        #expect(try has(STDERR_FILENO))
        #expect(try !has(pipe.readEnd) && !has(pipe.writeEnd))
    }
}
