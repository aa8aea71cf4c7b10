/// The place at which a test calls this library. Failures are reported there.
struct SourcePlace: Sendable {
    let fileID: StaticString
    let filePath: StaticString
    let line: UInt
    let column: UInt
}
