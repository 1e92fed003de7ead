"""The k best subscriptions of each event: arguments of a call, and ranking of the matches."""
