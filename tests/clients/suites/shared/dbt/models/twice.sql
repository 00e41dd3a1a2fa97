{{ config(materialized='view') }}
select n, total * 2 as twice from {{ ref('totals') }}
