import ConfluxNode
import Foundation
import InventoryModel

/// Has the orders packed, one after the other. Every front end has a packer, and one of them is at work: the one that holds
/// the lease.
struct Packer: Sendable {
    private let node: Node
    private let orders: ModelStore<Orders>

    init(_ node: Node) async throws {
        (self.node, orders) = (node, try await node.store(Orders.self))
    }

    /// Waits for its turn and works, until its task is cancelled.
    func run() async throws {
        while !Task.isCancelled {
            do {
                try await node.withLease("packing") { lease in try await pack(lease) }
            } catch {
                // Another front end has its turn. Wait in line again.
                guard (error as? DispatchError)?.code == .leaseLost else { throw error }
            }
        }
    }

    /// Prints the slip of each order, one after the other, and records that the order is packed.
    ///
    /// If this process dies between the two, the next packer prints the slip again. A printer that remembers the highest
    /// token could refuse the slips of a packer that was suspended and lost its lease.
    private func pack(_ lease: Lease) async throws {
        while !Task.isCancelled {
            let waiting = try await orders.value { !$0.unpacked.isEmpty }
            guard let id = waiting.unpacked.first, let order = waiting.orders[id] else { continue }
            print("pack \(id): \(order.amount) \(order.item), token \(lease.token)")
            fflush(nil)
            do throws(DispatchError) {
                try await orders.dispatch(.pack(id: id), under: lease).effect()
            } catch {
                // Somebody may have packed it by hand.
                if error.code != .refused { throw error }
            }
        }
    }
}
