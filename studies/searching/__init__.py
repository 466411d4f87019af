"""What searches are worth at equal cost, for studies/searches.py: plan, measure, rivals, page, figure."""
