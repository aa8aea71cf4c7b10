/// What is wrong with the migrations of one process.
enum MigrationFault: Hashable {
    /// They throw.
    case throwing
    /// They make another state than those of other processes.
    case differing(process: Int)
    /// The process dies of them.
    case killing
    /// They never end.
    case hanging

    struct Thrown: Error {}

    /// The fault, whichever process has it.
    var kind: MigrationFault {
        if case .differing = self { .differing(process: 0) } else { self }
    }

    /// The fault of the process that is migrating.
    @TaskLocal static var present: MigrationFault?

    /// Something to add to the state that a migration makes.
    ///
    /// - Throws: If the migration fails.
    static func strike() throws -> Int {
        switch present {
        case .throwing: throw Thrown()
        case .differing(let process): process
        case .killing, .hanging, nil: 0
        }
    }
}
