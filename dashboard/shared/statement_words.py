"""What the page of a statement calls its lines and figures, and what it says of them."""

# Lines of a statement that belong to no team.
COMMON = {
    "__idle__": "(idle capacity)",
    "__unallocated__": "(borne by nobody)",
    "__unavailable__": "(unavailable capacity)",
    "__overlap__": "(held twice, taken off)",
    "__set_aside__": "(records set aside)",
    "__no_team__": "(quota that no team used yet)",
    "unassigned": "unassigned",
}
# The kinds of lines, as an invoice calls them.
KINDS = {
    "held": "Held by teams",
    "idle_share": "Idle capacity, borne by teams",
    "unavailable_share": "Unavailable capacity, borne by teams",
    "idle": "Idle capacity",
    "unavailable": "Unavailable capacity",
    "overlap": "Held twice, taken off",
    "loss_adjustment": "Loss adjustment: of earlier days, not useful after all",
    "correction": "Corrections of closed months",
    "shared": "Parts of fixed monthly costs",
    "preemption_credit": "Credits to those whose work was preempted",
    "preemption_charge": "Preempted work, charged to whom it made room for",
}
ROUNDED = (
    "Each line is rounded to the cent, and so that lines and days sum to the invoice to the cent: a sum of"
    " lines, for example of a GPU model, may be a cent off its GPU-hours times the price."
)
CORRECTED = (
    "What was closed stays as it was signed. What became known later is the difference, line by line, and is"
    " billed here."
)
NO_ACTIVITY = "nobody saw whether the GPUs did anything: no GPU metrics are read"
HELP = {
    "all": "What is on the line: held, and for the common lines idle, unavailable or held twice.",
    "held": "GPUs times the hours for which the team's pods held them.",
    "useful": "Held while running, with activity, and not lost later.",
    "not_useful": "Held for any other known cause; what its holder could have spared is on the page Waste.",
    "unattributed": "Held, and no cause is known yet.",
    "list": "At the public price.",
    "effective": "At the negotiated price, with commitments spread over their use.",
    "billed": "What the team pays: the effective cost in a chargeback, 0 in a showback.",
    "unit": "Effective cost of everything, idle capacity too, per useful GPU-hour; at most that, where the"
    " useful hours are a lower bound.",
    "commitment": "Quota that was neither used nor lent.",
    "adjusted": "Booked as useful on an earlier day and known as lost or idle since: taken off useful here."
    " The hours were paid when they were held, so it costs nothing.",
    "lent": "Unused quota that others of the pool used meanwhile.",
    "borrowed": "Held above the own quota.",
    "worth": "At the average effective price of the GPU model that day. A note: it is in no cost above.",
}
# Name in the statement, title.
NOTES = (("lent", "Lent"), ("borrowed", "Borrowed"), ("unused_commitment", "Unused"))
