/// The part of your program that decides: what a process dispatches when it sees its stores, outcomes and leases.
///
/// Write the decisions once, as a value without I/O. Your processes call them with a node, and a ``Simulation`` with a
/// ``SimulatedProcess``. The simulation makes one for each process, and a new one when a process starts again after a
/// crash: what the former one remembered is lost.
///
/// ```swift
/// /// Ships each order once there is stock for it.
/// struct Fulfilment: SimulatedProgram {
///     mutating func run(on process: inout SimulatedProcess) {
///         guard let orders = process.read(Orders.self), let next = orders.value.open.first else { return }
///         process.dispatch(.ship(next), to: Orders.self, ifUnchangedSince: orders.version)
///     }
/// }
/// ```
public protocol SimulatedProgram {
    /// Looks at what there is, and dispatches what follows from it.
    ///
    /// It is called when something may have changed for the process: an entry was applied, an outcome or an answer came.
    /// It is also called as time passes, about twice a second. There may be several changes between two calls.
    ///
    /// - Parameter process: The process. All that it reads in one call stays as it is until the call returns.
    mutating func run(on process: inout SimulatedProcess)
}

/// One run of a program in a process, from the process's start to its end.
final class ProgramRun {
    var program: any SimulatedProgram
    var random: SimulationRandom
    /// What it dispatched. A transaction has several records.
    var records: [[DispatchRecord]] = []
    /// The leases that it wants, by name.
    var claims: [String: ProgramClaim] = [:]
    /// Claims that it gave up before they had their receipts.
    var abandoned: [ProgramClaim] = []
    /// When the program is called next; nil while it is called.
    var nextAt: Duration?
    /// Whether something has changed since it was called.
    var isWoken = false

    init(_ program: any SimulatedProgram, random: SimulationRandom) {
        (self.program, self.random) = (program, random)
    }
}
