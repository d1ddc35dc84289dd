-- What our team asks each week.
-- name: gaps
-- the longest gaps of a stream
with g as (select operator, ts_ns - lag(end_ns) over (partition by rank, stream order by ts_ns) gap_ns from kernels)
select operator, gap_ns from g order by gap_ns desc limit 3;

-- name: phases
select phase, sum(dur_ns) total_ns from kernels
group by 1 order by 2 desc
-- name: nothing
