"""The timetable: an index of what is due next. `contract` says what it promises, `memory` and `redis` keep it."""
