"""The timetable: an index of what is due next. `contract` says what it promises; `memory` is for one process."""
