import ConfluxWorker
import TicketModelUpgraded

import struct TicketModel.Sales

// The second version of the desk, without its own code.
await Worker.main(
    "ticket-desk", version: "1.1.0", states: [HostedState(Hall.self), HostedState(Sales.self)])
