// Not compiled with the package itself, which Conflux does not depend on: see README.md.

import ConfluxNode
import Tracing

extension DispatchHandle {
    /// Waits for the receipt within a span, which has the number of the entry.
    ///
    /// The span begins with the call, so call it right after the dispatch. The context of the trace does not travel with
    /// the action: an observer elsewhere finds the span by the entry.
    ///
    /// - Parameter name: The span's name, such as the action's.
    /// - Returns: The receipt.
    /// - Throws: What ``receipt()`` throws. The span records it.
    public func receipt(inSpan name: String) async throws -> Receipt {
        try await withSpan(name, ofKind: .producer) { span in
            span.attributes["messaging.system"] = "conflux"
            let receipt = try await self.receipt()
            span.attributes["conflux.entry"] = "\(receipt.sequence)"
            span.attributes["conflux.log"] = receipt.log.map { "\($0)" } ?? ""
            return receipt
        }
    }
}
